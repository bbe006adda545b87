// The panel about the selected node: path, tokens, text, locks, last use, and who used it.
// Not here: the tree itself; who used what (hits.js).

import { buttons, h } from "../../parts/dom.js";
import { n_of, n_short, shown, text_of } from "../../parts/text.js";
import { path_of } from "./model.js";
import { amount, lines_of, mark_of } from "./signs.js";

const MAX_TEXT = 20_000, MAX_IDS = 400, MAX_USERS = 60, MAX_PATH = 12;

/** @param {object} on  close(), select(id), request(id), only(id), toggle(id) */
export function create_detail(doc, on) {
  const element = h(doc, "section", { class: "detail", "aria-label": "Selected node", hidden: true });
  let shown_as = "";
  let shown_tokens = null;

  const button = buttons(doc);
  const link = (text, title, onclick) => button(text, title, onclick, { class: "link" });

  function path_to(item) {
    const path = path_of(item);
    const n = path.reduce((sum, at) => sum + at.node.tokens.length, 0);
    const steps = path.length > MAX_PATH ? [...path.slice(0, 3), null, ...path.slice(3 - MAX_PATH)] : path;
    const step = (at) => (at === null ? "…" : at === item ? h(doc, "b", {}, String(at.id)) : link(String(at.id), `Select node ${at.id}`, () => on.select(at.id)));
    return ["root", ...steps.flatMap((at) => [" › ", step(at)]), ` (${n_of(n, "token")})`];
  }

  function list_of(users) {
    if (!users.length) return ["no request in the events at hand"];
    const entry = ({ request, how, n, name }) => h(doc, "li", {},
      h(doc, "span", { class: "how" }, how === "wrote" ? "+ wrote" : n > 1 ? `● hit ×${n}` : "● hit"), " ",
      link(name, "Let its path stand out", () => on.request(request)));
    const more = users.length > MAX_USERS ? h(doc, "li", {}, `… and ${users.length - MAX_USERS} before`) : null;
    return [h(doc, "ul", {}, ...users.slice(-MAX_USERS).reverse().map(entry), more)];
  }

  function tokens_of(view, tokens, open) {
    const chip = (id) => h(doc, "span", { class: "chip", title: `token ${id}` }, shown(text_of(view, [id])) || "∅");
    const more = tokens.length > MAX_IDS ? ` … and ${tokens.length - MAX_IDS} more` : null;
    return h(doc, "details", { open }, h(doc, "summary", {}, `Tokens, one by one (${n_short(tokens.length)})`),
      h(doc, "div", { class: "verbatim chips" }, ...tokens.slice(0, MAX_IDS).map(chip), more));
  }

  function fill(view, { sign, word }, item, users) {
    const { node, n_nodes, n_tokens } = item;
    const n = node.tokens.length;
    const rows = {
      path: path_to(item),
      tokens: [n],
      below: [n_nodes > 1 ? amount({ n_nodes: n_nodes - 1, n_tokens: n_tokens - n }) : "nothing"],
      locks: [node.locks > 0 ? `${node.locks}: in use, cannot be evicted` : item.ghost ? "none" : "none: may be evicted"],
      "last used": [`tick ${node.tick}`],
      "used by": list_of(users),
    };
    const acts = n_nodes > 1 ? [button("Only this subtree", "Key z", () => on.only(node.id)), button("Fold / unfold", "Key c", () => on.toggle(node.id))] : [];
    const stops = () => [...element.querySelectorAll("button,summary")];
    const was_open = element.querySelector("details")?.open;
    const was_at = stops().indexOf(doc.activeElement);
    element.replaceChildren(
      h(doc, "div", { class: "head" }, h(doc, "b", {}, `node ${node.id}`), ` ${sign} ${word}`.trimEnd(), h(doc, "span", { class: "nbs-grow" }),
        button("×", "Close (Esc)", () => on.close())),
      h(doc, "div", { class: "tools", hidden: !acts.length }, ...acts),
      h(doc, "dl", {}, ...Object.entries(rows).flatMap(([name, value]) => [h(doc, "dt", {}, name), h(doc, "dd", {}, ...value)])),
      h(doc, "pre", { class: "verbatim", tabindex: "0", "aria-label": "Text" }, lines_of(view, item, MAX_TEXT)),
      tokens_of(view, node.tokens, was_open));
    if (was_at >= 0) (stops()[was_at] ?? stops()[0]).focus();
  }

  return {
    element,
    /** Show an item, or nothing (null). `users` are those of hits.js, each with a `name`. */
    show(view, item, users) {
      element.hidden = item === null;
      if (item === null) return void (shown_as = "");
      const { id, locks, tick, tokens } = item.node;
      const mark = mark_of(item);
      const path = path_of(item).map((at) => [at.id, at.node.tokens.length]);
      const facts = JSON.stringify([id, locks, tick, item.ghost, item.n_nodes, item.n_tokens, mark, users, path]);
      if (facts === shown_as && tokens === shown_tokens) return;
      [shown_as, shown_tokens] = [facts, tokens];
      fill(view, mark, item, users);
    },
  };
}
