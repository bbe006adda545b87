// The numbers: figures in a row, the KV pool as a bar, and the size of the batch over the latest steps as a curve.
//
// Not here: the figures (figures.js), the curve (curve.js).

import { grouped } from "../../parts/grouped.js";
import { h, say } from "../../parts/dom.js";
import { create_share } from "../../parts/share.js";
import { create_curve } from "./curve.js";
import { figures, pool } from "./figures.js";

export const css = `
.nbs .numbers{display:flex;flex-wrap:wrap;gap:4px 18px;align-items:center;padding:4px 0}
.nbs .numbers dl{display:flex;flex-wrap:wrap;gap:2px 18px;margin:0}
.nbs .numbers dl div{display:flex;flex-direction:column}
.nbs .numbers dt{color:var(--nbs-faint);font-size:11px;line-height:1.3}.nbs .numbers dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums;line-height:1.35;white-space:nowrap}
.nbs .numbers .pool{flex:1 1 260px;min-width:220px;max-width:460px}
.nbs .numbers .gauge{display:flex;height:12px;border:1px solid var(--nbs-fg);border-radius:3px;overflow:hidden}
.nbs .numbers .gauge span{flex:0 0 0;height:100%}
.nbs .numbers .locked{background:repeating-linear-gradient(45deg,var(--nbs-orange) 0 1.5px,transparent 1.5px 5px),repeating-linear-gradient(-45deg,var(--nbs-orange) 0 1.5px,transparent 1.5px 5px),color-mix(in srgb,var(--nbs-orange) 35%,var(--nbs-bg))}
.nbs .numbers .evictable{background:repeating-linear-gradient(-45deg,var(--nbs-blue) 0 1.5px,var(--nbs-bg) 1.5px 5px)}
.nbs .numbers .free{background:var(--nbs-bg)}
.nbs .numbers .parts{display:flex;flex-wrap:wrap;gap:0 12px;font-size:11px;color:var(--nbs-faint);font-variant-numeric:tabular-nums}
.nbs .numbers .parts i{display:inline-block;width:9px;height:9px;border:1px solid var(--nbs-fg);margin-right:4px}
.nbs .numbers .curve{flex:0 0 auto;color:var(--nbs-faint);font-size:11px}.nbs .numbers svg{display:block}
.nbs .numbers .curve path.line{fill:none;stroke:var(--nbs-blue);stroke-width:1.5}.nbs .numbers .curve path.area{fill:var(--nbs-blue);fill-opacity:.15}
.nbs .numbers .curve path.base{stroke:var(--nbs-line);fill:none}
`;

export function create(root, store) {
  return new NumbersView(root, store);
}

class NumbersView {
  constructor(root, store) {
    this.store = store;
    this.doc = root.ownerDocument;
    this.list = h(this.doc, "dl");
    this.cells = new Map(); // dd by name
    this.pool = new Pool(this.doc);
    this.curve = create_curve(this.doc);
    this.element = h(this.doc, "div", { class: "numbers" }, this.list, this.pool.element, this.curve.element);
    root.append(this.element);
    this.update();
  }

  update() {
    const { view } = this.store;
    const rows = figures(this.store);
    const names = rows.map(([name]) => name).join("\n");
    if (names !== this.names) this._make(rows);
    this.names = names;
    for (const [name, value] of rows) say(this.cells.get(name), value);
    this.pool.show(pool(view));
    this.curve.show(this.store.samples, this.store.range[0], view.seq);
  }

  destroy() {
    this.element.remove();
  }

  _make(rows) {
    this.cells.clear();
    this.list.replaceChildren(
      ...rows.map(([name, , title]) => {
        const cell = h(this.doc, "dd");
        this.cells.set(name, cell);
        return h(this.doc, "div", { title }, h(this.doc, "dt", {}, name), cell);
      }),
    );
  }
}

class Pool {
  constructor(doc) {
    this.counts = {};
    const names = ["locked", "evictable", "free"];
    for (const name of names) {
      this.counts[name] = h(doc, "span");
    }
    this.bar = create_share(doc, names, { class: "gauge", role: "img" });
    const parts = names.map((name) => h(doc, "span", {}, h(doc, "i", { class: name }), this.counts[name]));
    this.element = h(doc, "div", { class: "pool", title: "The KV pool, in tokens" }, this.bar.element, h(doc, "div", { class: "parts" }, ...parts));
  }

  show(parts) {
    this.element.hidden = parts === null;
    if (parts === null) return;
    this.bar.show(parts.map(([, value]) => value));
    for (const [name, value] of parts) say(this.counts[name], `${grouped(value)} ${name}`);
    const words = parts.map(([name, value]) => `${grouped(value)} ${name}`).join(", ");
    this.bar.element.setAttribute("aria-label", `KV pool: ${words} tokens`);
  }
}
