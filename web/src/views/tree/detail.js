// The panel about the selected node: path, tokens, text, locks, last use, and who used it.
// Not here: the tree itself; who used what (hits.js).

import { h } from "../../parts/dom.js";
import { cut, n_of, n_short, shown, shown_lines, text_of } from "../../parts/text.js";
import { path_of } from "./model.js";
import { mark_of } from "./signs.js";

const MAX_TEXT = 20_000, MAX_IDS = 400, MAX_USERS = 60, MAX_PATH = 12;

/** @param {object} on  close(), select(id), request(id), only(id), toggle(id) */
export function create_detail(doc, on) {
  const element = h(doc, "section", { class: "detail", "aria-label": "Selected node", hidden: true });
  let shown_as = "";
  let shown_tokens = null;

  const button = (text, onclick, attributes = {}) => h(doc, "button", { onclick, ...attributes }, text);
  const link = (text, onclick, title) => button(text, onclick, { class: "link", title });
  const row = (name, ...value) => [h(doc, "dt", {}, name), h(doc, "dd", {}, ...value)];

  function path_row(item) {
    const path = path_of(item);
    const n = path.reduce((sum, at) => sum + at.node.tokens.length, 0);
    const steps = path.length > MAX_PATH ? [...path.slice(0, 3), null, ...path.slice(3 - MAX_PATH)] : path;
    const step = (at) => (at === null ? "…" : at === item ? h(doc, "b", {}, String(at.id)) : link(String(at.id), () => on.select(at.id), `Select node ${at.id}`));
    return row("path", "root", ...steps.flatMap((at) => [" › ", step(at)]), ` (${n_of(n, "token")})`);
  }

  function users_row(users) {
    const entry = ({ request, how, n, name }) => h(doc, "li", {},
      h(doc, "span", { class: "how" }, how === "wrote" ? "+ wrote" : n > 1 ? `● hit ×${n}` : "● hit"), " ",
      link(name, () => on.request(request), "Let its path stand out"));
    const more = users.length > MAX_USERS ? h(doc, "li", {}, `… and ${users.length - MAX_USERS} before`) : null;
    return row("used by", users.length ? h(doc, "ul", {}, ...users.slice(-MAX_USERS).reverse().map(entry), more) : "no request in the events at hand");
  }

  function tokens_of(view, { tokens }) {
    const chip = (id) => h(doc, "span", { class: "chip", title: `token ${id}` }, shown(text_of(view, [id])) || "∅");
    const more = tokens.length > MAX_IDS ? ` … and ${tokens.length - MAX_IDS} more` : null;
    return h(doc, "details", {}, h(doc, "summary", {}, `Tokens, one by one (${n_short(tokens.length)})`),
      h(doc, "div", { class: "chips" }, ...tokens.slice(0, MAX_IDS).map(chip), more));
  }

  function fill(view, { sign, word }, item, users) {
    const { node, n_nodes, n_tokens } = item;
    const n = node.tokens.length;
    const text = shown_lines(text_of(view, node.tokens, MAX_TEXT));
    const below = n_nodes > 1 ? `${n_of(n_nodes - 1, "node")}, ${n_short(n_tokens - n)} tokens` : "nothing";
    const locks = node.locks > 0 ? `${node.locks}: in use, cannot be evicted` : item.ghost ? "none" : "none: may be evicted";
    const acts = n_nodes > 1 ? h(doc, "div", { class: "tools" }, button("Only this subtree", () => on.only(node.id), { title: "Key z" }),
      button("Fold / unfold", () => on.toggle(node.id), { title: "Key c" })) : null;
    const stops = () => [...element.querySelectorAll("button,summary")];
    const was_open = element.querySelector("details")?.open ?? false;
    const was_at = stops().indexOf(doc.activeElement);
    element.replaceChildren(h(doc, "div", {},
      h(doc, "div", { class: "head" }, h(doc, "b", {}, `node ${node.id}`), ` ${sign} ${word}`.trimEnd(), h(doc, "span", { class: "nbs-grow" }),
        button("×", on.close, { title: "Close (Esc)", "aria-label": "Close" })),
      acts,
      h(doc, "dl", {}, ...path_row(item), ...row("tokens", String(n)), ...row("below", below), ...row("locks", locks),
        ...row("last used", `tick ${node.tick}`), ...users_row(users)),
      h(doc, "pre", { tabindex: "0", "aria-label": "Text" }, cut(text, MAX_TEXT)),
      tokens_of(view, node)));
    element.querySelector("details").open = was_open;
    if (was_at >= 0) (stops()[was_at] ?? stops()[0]).focus();
  }

  return {
    element,
    /** Show an item, or nothing (null). `users` are those of hits.js, each with a `name`. */
    show(view, marks, item, users) {
      element.hidden = item === null;
      if (item === null) return void (shown_as = "");
      const { id, locks, tick, tokens } = item.node;
      const mark = mark_of(marks, item);
      const path = path_of(item).map((at) => [at.id, at.node.tokens.length]);
      const facts = JSON.stringify([id, locks, tick, item.ghost, item.n_nodes, item.n_tokens, mark, users, path]);
      if (facts === shown_as && tokens === shown_tokens) return;
      [shown_as, shown_tokens] = [facts, tokens];
      fill(view, mark, item, users);
    },
  };
}
