// The way back from a subtree that is drawn alone. Not here: the tree (index.js).

import { h } from "../../parts/dom.js";
import { path_of } from "./model.js";

const MAX_STEPS = 8;

/** `on_only(id)` draws another subtree, or all (0). */
export function create_crumbs(doc, on_only) {
  const element = h(doc, "nav", { class: "crumbs", "aria-label": "Subtree", hidden: true });
  let shown_as = "";
  return {
    element,
    show(item) {
      const path = item === null ? [] : path_of(item);
      const source = path.map((at) => at.id).join();
      if (source === shown_as) return;
      shown_as = source;
      element.hidden = item === null;
      const button = (text, id) => h(doc, "button", { onclick: () => on_only(id) }, text);
      const steps = path.slice(-MAX_STEPS).flatMap((at) => ["›", at === item ? h(doc, "b", {}, `node ${at.id}`) : button(`node ${at.id}`, at.id)]);
      element.replaceChildren(...(item === null ? [] : [button("Whole tree", 0), ...(path.length > MAX_STEPS ? ["› …"] : []), ...steps]));
    },
  };
}
