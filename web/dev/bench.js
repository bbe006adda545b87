// What drawing costs on a large log: ms until the views are painted, and ms for each update while it goes on.
//
// An update is what ten messages a second bring: tokens of all streams, changes of the tree, steps. Its time is that of
// folding, of all views, and of the layout that follows.
//
// ?show=tree,streams for some views alone. The result is in globalThis.result.

import { Feed } from "../src/feed.js";
import { mount } from "../src/shell.js";
import { Store } from "../src/store.js";
import { grown, made_up } from "./made_up.js";

const N_UPDATES = 40;
const asked = new URLSearchParams(location.search);
const show = (asked.get("show") ?? "").split(",").filter(Boolean);
const el = document.getElementById("out");

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

const log = made_up({ n_nodes: 10_000, n_streams: 64 });
let begin = performance.now();
const feed = new Feed();
feed.take_delta(log.lines, 1, log.lines.length);
const fold_ms = performance.now() - begin;
const store = new Store(feed, { source: log.run, engine: log.engine, can_cancel: true });
await painted();

begin = performance.now();
const shell = mount(el, store, { show, title: "bench" });
await painted();
const first_paint_ms = performance.now() - begin;
while (shell.is_beginning) await painted();
const all_painted_ms = performance.now() - begin;

// What all callbacks of frames take, with the layout that follows; the wait for the frame does not count.
let spent = 0;
const next_frame = globalThis.requestAnimationFrame;
globalThis.requestAnimationFrame = (fn) =>
  next_frame((time) => {
    const began = performance.now();
    fn(time);
    el.getBoundingClientRect();
    spent += performance.now() - began;
  });

const updates = [];
for (let n = 0; n < N_UPDATES; n++) {
  const lines = grown(log, n);
  spent = 0;
  begin = performance.now();
  feed.take_delta(lines, lines[0][0], lines.at(-1)[0]);
  const take_ms = performance.now() - begin;
  await painted();
  await painted(); // what a view put off to another frame
  updates.push(take_ms + spent);
}

globalThis.result = { fold_ms, first_paint_ms, all_painted_ms, update_ms: median(updates), worst_update_ms: Math.max(...updates) };
