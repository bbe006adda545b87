// The panel about the selected node: path, tokens, text, locks, last use, and who used it.
// Not here: the tree itself; who used what (hits.js).

import { h } from "../../parts/dom.js";
import { path_of } from "./model.js";
import { mark_of } from "./signs.js";
import { n_of, n_short, shown, shown_lines, text_of } from "../../parts/text.js";

const MAX_TEXT = 20_000, MAX_IDS = 400, MAX_USERS = 60, MAX_PATH = 12;

/** @param {object} on  close(), select(id), request(id), only(id), fold(id) */
export function create_detail(doc, on) {
  const element = h(doc, "section", { class: "detail", "aria-label": "Selected node", hidden: true });
  let shown_as = "";
  let shown_tokens = null;

  const button = (text, onclick, attributes = {}) => h(doc, "button", { onclick, ...attributes }, text);
  const row = (name, ...value) => [h(doc, "dt", {}, name), h(doc, "dd", {}, ...value)];

  function path_row(item) {
    const path = path_of(item);
    const n = path.reduce((sum, at) => sum + at.node.tokens.length, 0);
    const shorter = path.length > MAX_PATH ? [...path.slice(0, 3), null, ...path.slice(3 - MAX_PATH)] : path;
    const steps = shorter.flatMap((at) => [" › ", at === null ? "…" : at === item ? h(doc, "b", {}, String(at.id))
      : button(String(at.id), () => on.select(at.id), { class: "link", title: `Select node ${at.id}`, "aria-label": `node ${at.id}` })]);
    return row("path", "root", ...steps, ` (${n_of(n, "token")})`);
  }

  function users_row(users, name_of) {
    if (!users.length) return row("used by", "no request in the events at hand");
    const entries = users.slice(-MAX_USERS).reverse().map(({ request, how, n }) => h(doc, "li", {},
      h(doc, "span", { class: "how" }, how === "hit" ? (n > 1 ? `● hit ×${n}` : "● hit") : "+ wrote"), " ",
      button(name_of(request), () => on.request(request), { class: "link", title: "Let its path stand out" })));
    const more = users.length > MAX_USERS ? [h(doc, "li", {}, `… and ${users.length - MAX_USERS} before`)] : [];
    return row("used by", h(doc, "ul", {}, ...entries, ...more));
  }

  function tokens_row(view, { tokens }) {
    const text = (id) => shown(view.texts.get(id) ?? `<${id}>`) || "∅";
    const chips = tokens.slice(0, MAX_IDS).map((id) => h(doc, "span", { class: "chip", title: `token ${id}` }, text(id)));
    const more = tokens.length > MAX_IDS ? ` … and ${tokens.length - MAX_IDS} more` : null;
    const summary = h(doc, "summary", {}, `Tokens, one by one (${n_short(tokens.length)})`);
    return h(doc, "details", {}, summary, h(doc, "div", { class: "chips" }, ...chips, more));
  }

  function fill(view, marks, item, users, name_of) {
    const { node } = item;
    const mark = mark_of(marks, item);
    const n_below = item.n_nodes - 1;
    const text = shown_lines(text_of(view, node.tokens, MAX_TEXT));
    const head = h(doc, "div", { class: "head" }, h(doc, "b", {}, `node ${node.id}`), ` ${mark.sign} ${mark.word}`.trimEnd(),
      h(doc, "span", { class: "grow" }), button("×", on.close, { title: "Close (Esc)", "aria-label": "Close" }));
    const facts = h(doc, "dl", {}, ...path_row(item), ...row("tokens", String(node.tokens.length)),
      ...row("below", n_below ? `${n_of(n_below, "node")}, ${n_short(item.n_tokens - node.tokens.length)} tokens` : "nothing"),
      ...row("locks", node.locks > 0 ? `${node.locks}: in use, cannot be evicted` : item.ghost ? "none" : "none: may be evicted"),
      ...row("last used", `tick ${node.tick}`), ...users_row(users, name_of));
    const only = button("Only this subtree", () => on.only(node.id), { title: "Key z" });
    const acts = n_below ? [h(doc, "div", { class: "tools" }, only, button("Fold / unfold", () => on.fold(node.id), { title: "Key c" }))] : [];
    const opened = element.querySelector("details")?.open ?? false;
    const was_at = element.contains(doc.activeElement) ? [...element.querySelectorAll("button,summary")].indexOf(doc.activeElement) : -1;
    const whole = h(doc, "pre", { tabindex: "0", "aria-label": "Text" }, text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
    element.replaceChildren(head, ...acts, facts, whole, tokens_row(view, node));
    element.querySelector("details").open = opened;
    if (was_at >= 0) (element.querySelectorAll("button,summary")[was_at] ?? element.querySelector("button")).focus();
  }

  return {
    element,
    /** Show an item, or nothing (null). `users` are from hits.js, `name_of` gives words for a request. */
    show(view, marks, item, users, name_of) {
      element.hidden = item === null;
      if (item === null) return void (shown_as = "");
      const { id, locks, tick, tokens } = item.node;
      const names = users.map((user) => [user, name_of(user.request)]);
      const path = path_of(item).map((at) => [at.id, at.node.tokens.length]);
      const facts = JSON.stringify([id, locks, tick, item.ghost, item.n_nodes, item.n_tokens, mark_of(marks, item), names, path]);
      if (facts === shown_as && tokens === shown_tokens) return;
      [shown_as, shown_tokens] = [facts, tokens];
      fill(view, marks, item, users, name_of);
    },
  };
}
