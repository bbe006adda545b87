// What drawing costs on a large log, in ms: until what is in sight is painted, until all is, and for each update while it
// goes on, and for a keyframe.
//
// An update is what ten messages a second bring: tokens of all streams, changes of the tree, steps. Its time is that of
// folding, of all views, and of the layout that follows; that of a keyframe also holds reading its JSON.
//
// ?show=tree,streams for some views alone, ?updates=0 for none. The result is in globalThis.result, and printed.

import { Feed } from "../src/feed.js";
import { dump } from "../src/fold/dump.js";
import { mount } from "../src/shell.js";
import { Store } from "../src/store.js";
import { VIEWS } from "../src/views/index.js";
import { grown, made_up } from "./made_up.js";

const N_KEYS = 5;
const asked = new URLSearchParams(location.search);
const n_updates = Number(asked.get("updates") ?? 40);
const show = (asked.get("show") ?? "").split(",").filter(Boolean);
const el = document.getElementById("out");

const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
const since = (begin) => Math.round(10 * (performance.now() - begin)) / 10;
const rank = (values, share) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) * share)];

const make_ms = watched();
const log = made_up({ n_nodes: 10_000, n_streams: 64 });
let begin = performance.now();
const feed = new Feed();
feed.take_delta(log.lines, 1, log.lines.length);
const fold_ms = since(begin);
const store = new Store(feed, { source: log.run, engine: log.engine, can_cancel: true });
for (let n = 0; n < 20; n++) await painted(); // what the page itself has to do is over

performance.mark("mount");
begin = performance.now();
const first_frame = painted(); // asked for before views ask for frames: what they put off until it is painted comes after it
const shell = mount(el, store, { show, title: "bench" });
await first_frame;
const first_paint_ms = since(begin);
performance.mark("first paint");
const in_sight = [...document.querySelectorAll(".nbs-view")].filter((view) => view.getBoundingClientRect().top < innerHeight);
const n_blank = in_sight.filter((view) => view.checkVisibility() && !view.childElementCount).length;
while (shell.is_beginning) await painted();
const all_painted_ms = since(begin);
performance.mark("all painted");

// What all callbacks of frames and timers take, with the layout that follows; the wait for the frame does not count.
let spent = 0;
const counted = (fn) => (...given) => {
  const began = performance.now();
  fn(...given);
  el.getBoundingClientRect();
  spent += performance.now() - began;
};
const { requestAnimationFrame: next_frame, setTimeout: next_time } = globalThis;
globalThis.requestAnimationFrame = (fn) => next_frame(counted(fn));
globalThis.setTimeout = (fn, ms) => next_time(counted(fn), ms);

const updates = [];
for (let n = 0; n < n_updates; n++) {
  const lines = grown(log, n);
  updates.push(await taken(() => feed.take_delta(lines, lines[0][0], lines.at(-1)[0])));
}
const keys = [];
for (let n = 0; n < N_KEYS && n_updates; n++) {
  const json = JSON.stringify({ ...dump(feed.live), seq: feed.live.seq + 1 });
  keys.push(await taken(() => feed.take_key(JSON.parse(json))));
}

globalThis.result = {
  fold_ms, first_paint_ms, all_painted_ms, n_blank, make_ms,
  update_ms: rank(updates, 0.5), worst_update_ms: rank(updates, 1), key_ms: rank(keys, 0.5), worst_key_ms: rank(keys, 1),
};
console.log(JSON.stringify(globalThis.result));

/** How long the page is busy with what `take` brings, until it is drawn. */
async function taken(take) {
  spent = 0;
  counted(take)();
  for (let n = 0; n < 3; n++) await painted(); // with what a view put off to another frame
  return Math.round(10 * spent) / 10;
}

/** How long each view takes to be made, with the layout that follows, as it will be known. */
function watched() {
  const made = {};
  for (const [name, view] of Object.entries(VIEWS)) {
    const { create } = view;
    view.create = (...given) => {
      const began = performance.now();
      const view = create(...given);
      made[name] = since(began);
      return view;
    };
  }
  return made;
}
