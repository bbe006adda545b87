// Tells when an element looks different though nothing has happened: a new width, another theme.
//
// Not here: what is drawn then (index.js).

/** Call `redraw` on each such change; returns a function that ends it. */
export function watch_looks(element, redraw) {
  const doc = element.ownerDocument;
  const { ResizeObserver, MutationObserver, matchMedia } = doc.defaultView;
  const sizes = new ResizeObserver(redraw);
  sizes.observe(element);
  const themes = new MutationObserver(redraw); // JupyterLab and others name theirs on one of these
  for (const each of [doc.documentElement, doc.body]) themes.observe(each, { attributes: true });
  const dark = matchMedia.call(doc.defaultView, "(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  return () => {
    sizes.disconnect();
    themes.disconnect();
    dark.removeEventListener("change", redraw);
  };
}
