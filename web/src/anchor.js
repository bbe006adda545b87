// Live views in the place of HTML: an output holds <div data-nbsglang-view="PLACE">HTML</div>, and while there is a model
// with this `place` that is `live`, its view stands there instead. A notebook that is opened without a kernel shows the
// HTML, and so does every other reader.
//
// Not here: what is drawn (view_stub.js).

const ATTRIBUTE = "data-nbsglang-view";
const KEY = Symbol.for("nbsglang.places");
const FORGET_MS = 10_000; // an output that was only moved is back by then

/** Draw the model in its places, now and later, until the returned function is called. `draw(el, on_drawn)` returns a stop. */
export function anchored(model, draw) {
  const { views, look } = places();
  const place = model.get("place");
  const mounts = new Map(); // from an element to {host, stop, is_drawn}

  const show = (el, mount) => {
    mounts.set(el, mount);
    el.append(mount.host);
    if (mount.is_drawn) hide(el, mount.host, true);
  };
  const drop = (el, mount) => {
    mounts.delete(el);
    mount.stop();
    mount.host.remove();
    hide(el, mount.host, false);
  };
  const sweep = () => {
    for (const [el, mount] of mounts) if (!el.isConnected) drop(el, mount);
  };
  const found = (el) => {
    if (!model.get("live") || mounts.has(el)) return;
    for (const [old, mount] of mounts) {
      if (old.isConnected) continue;
      mounts.delete(old); // the output was written anew: the view goes on there as it is
      return show(el, mount);
    }
    const mount = { host: el.ownerDocument.createElement("div"), stop: () => {}, is_drawn: false };
    show(el, mount);
    mount.stop = draw(mount.host, () => {
      mount.is_drawn = true;
      if (mount.host.parentNode) hide(mount.host.parentNode, mount.host, true);
    });
  };
  const changed = () => {
    if (model.get("live")) look(document);
    else for (const [el, mount] of mounts) drop(el, mount);
  };

  views.set(place, { found, sweep });
  model.on("change:live", changed);
  changed();
  return () => {
    views.delete(place);
    for (const [el, mount] of mounts) drop(el, mount);
  };
}

/** Hide what else is in the element, or show it again. */
function hide(el, host, is_hidden) {
  for (const child of el.children) if (child !== host) child.style.display = is_hidden ? "none" : "";
}

/** The places of all views of the document, and one observer that finds them. */
function places() {
  return (globalThis[KEY] ??= begin());
}

function begin() {
  const views = new Map();
  const look = (root) => {
    if (root.matches?.(`[${ATTRIBUTE}]`)) views.get(root.getAttribute(ATTRIBUTE))?.found(root);
    for (const el of root.querySelectorAll?.(`[${ATTRIBUTE}]`) ?? []) views.get(el.getAttribute(ATTRIBUTE))?.found(el);
  };
  let timer = null;
  const sweep = () => {
    timer = null;
    for (const view of [...views.values()]) view.sweep();
  };
  const seen = (records) => {
    if (!views.size) return;
    for (const { target, addedNodes, removedNodes } of records) {
      if (target.closest?.(`[${ATTRIBUTE}]`)) continue; // what views draw themselves
      for (const node of addedNodes) look(node);
      if (removedNodes.length) timer ??= setTimeout(sweep, FORGET_MS);
    }
  };
  new MutationObserver(seen).observe(document.documentElement, { childList: true, subtree: true });
  return { views, look };
}
