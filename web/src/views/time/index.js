// The time bar, which moves all views: the events of the store as a range, with play, steps, jumps, and a sentence about
// where it stands.
//
// Not here: folding again at the cursor (../../store.js), what the sentence is (../../explain.js).

import { n_until } from "../../events.js";
import { explain } from "../../explain.js";
import { is_cacheless } from "../../parts/cacheless.js";
import { buttons, h, press, say, toolbar } from "../../parts/dom.js";

const SPEEDS = [1, 4, 16]; // times that of life
const JUMPS = [["split", "NodeSplit"], ["eviction", "NodeEvicted"], ["hit", "NodeTouched"]];

const NOW = {
  false: "Live: as it is now. Move the slider or press play to see how it came to be.",
  true: "The end of the log. Move the slider or press play to see how it came to be.",
};

export const css = `
.nbs .time input[type=range]{flex:1 1 180px;min-width:120px;accent-color:var(--nbs-fg);margin:0}
.nbs .sentence{flex:1 0 100%;min-height:1.45em;overflow-wrap:anywhere;font-size:12.5px}
.nbs .time.past .sentence{font-weight:600}
`;

export function create(root, store) {
  const doc = root.ownerDocument;
  const button = buttons(doc);
  const back = button("◂", "Step back", () => stop_at(() => store.step(-1)));
  const play = button("▶\uFE0E", "Play", () => (store.playing ? store.pause() : store.play()));
  const speed = button("1×", "The speed of playing", () => store.set({ speed: SPEEDS[(SPEEDS.indexOf(store.settings.speed) + 1) % SPEEDS.length] }));
  const on = button("▸", "Step forward", () => stop_at(() => store.step(1)));
  const jumps = JUMPS.map(([word, kind]) =>
    button(`› ${word}`, `To the next ${word} (with Shift: to the one before)`, (event) => jump(word, kind, event.shiftKey)));
  const live = button("Live", "Follow what happens now", () => (store.pause(), store.seek(null)), { "aria-pressed": "true" });
  const range = h(doc, "input", { type: "range", min: "0", step: "1", "aria-label": "Time: the events so far" });
  const sentence = h(doc, "div", { class: "sentence", role: "status" });
  const place = h(doc, "span", { class: "count" });
  const tools = toolbar(doc, "Time", back, play, on, speed, ...jumps, live);
  const element = h(doc, "div", { class: "time" }, tools, range, place, sentence);
  root.append(element);
  let wanted = null; // where the range was moved to since the last frame
  let note = "";

  range.addEventListener("input", () => {
    const is_first = wanted === null;
    wanted = Number(range.value);
    if (is_first) (doc.defaultView?.requestAnimationFrame ?? setTimeout)(move);
  });

  function move() {
    const event = store.events[wanted];
    wanted = null;
    if (event !== undefined) stop_at(() => store.seek(event.seq));
  }

  function stop_at(act) {
    note = "";
    if (store.playing) store.pause();
    act();
  }

  function jump(word, kind, backwards) {
    const event = next_of(store, kind, backwards);
    stop_at(() => event !== null && store.seek(event.seq));
    note = event === null ? `There is no ${backwards ? "earlier" : "later"} ${word}.` : "";
    if (event === null) show();
  }

  function show() {
    const { events, cursor } = store;
    const [first, last] = [Math.min(n_until(events, store.range[0]), events.length - 1), events.length - 1];
    const i = cursor === null ? last : n_until(events, cursor) - 1;
    const [n, at] = [events.length && last - first + 1, Math.max(i - first + 1, 0)];
    range.min = String(Math.max(first, 0));
    range.max = String(Math.max(last, 0));
    if (wanted === null) range.value = String(Math.max(i, 0));
    for (const each of [range, back, play, on, speed, ...jumps]) each.disabled = n < 2;
    const words = note || (i >= 0 && cursor !== null ? explain(events[i], store.view) || `a ${events[i].kind} event` : "");
    // While it plays, a screen reader is not told of every event.
    sentence.setAttribute("aria-live", store.playing ? "off" : "polite");
    const text = words || (cursor === null ? (n ? NOW[String(store.replay)] : "") : "Before the first event.");
    say(sentence, text);
    sentence.title = text;
    say(place, n > 0 ? `${at} / ${n}` : "no events");
    range.setAttribute("aria-valuetext", n === 0 ? "no events" : `event ${at} of ${n}${words ? `: ${words}` : ", the latest"}`);
    say(play, store.playing ? "❚❚" : "▶\uFE0E");
    play.setAttribute("aria-label", store.playing ? "Pause" : "Play");
    play.title = store.playing ? "Pause" : "Play";
    say(speed, `${store.settings.speed}×`);
    live.title = store.replay ? "Back to the end of the log" : "Follow what happens now";
    say(live, store.replay ? "End" : "Live");
    press(live, cursor === null);
    element.classList.toggle("past", cursor !== null);
    for (const each of jumps) each.hidden = is_cacheless(store.live);
    tools.settle();
  }

  show();
  return { update: show, destroy: () => element.remove() };
}

/** The next event of a kind after the store's cursor, or the one before it; after the end comes the first again. */
export function next_of({ events, cursor, range, engine }, kind, backwards = false) {
  const is_one = (event) => event.kind === kind && (!engine || event.source === engine) && !(kind === "NodeTouched" && event.body.request < 0);
  const low = n_until(events, range[0]);
  const way = backwards ? -1 : 1;
  let i = backwards ? events.length - 1 : low;
  if (cursor !== null) i = backwards ? n_until(events, cursor - 1) - 1 : Math.max(n_until(events, cursor), low);
  for (; i >= low && i < events.length; i += way) if (is_one(events[i])) return events[i];
  return null;
}
