// A host for the views: a saved log as a replay, or told bit by bit through the two widgets as a kernel would.
//
// ?log=NAME of test/fixtures, ?at=SEQ for a moment of it, ?run=N for the Nth program or "last" (else the whole engine),
// ?break=VIEW for one that throws, ?pong=no for a kernel that does not hear clicks, ?at=end for where the run ends, ?final=yes to have it end there.

import view_stub from "../src/view_stub.js";
import widget from "../src/widget.js";
import { Feed } from "../src/feed.js";
import { mount } from "../src/shell.js";
import { Store } from "../src/store.js";
import { VIEWS } from "../src/views/index.js";

const asked = new URLSearchParams(location.search);
const el = document.getElementById("out");
document.body.classList.toggle("dark", asked.get("theme") === "dark");
el.style.width = asked.has("width") ? `${asked.get("width")}px` : "";

const text = await (await fetch(`/test/fixtures/${asked.get("log") ?? "judge"}.jsonl`)).text();
const lines = text.trimEnd().split("\n").map((line) => JSON.parse(line));
const runs = [...new Set(lines.filter((line) => line[3] === "StreamBegan").map((line) => line[2]))];
const run = asked.get("run") ?? "";
const source = run === "" ? "" : runs.at(run === "last" ? -1 : Number(run));
const show = (asked.get("show") ?? "").split(",").filter(Boolean);
const end = lines.findLastIndex((line) => line[2] === source) + 1; // the seqs of these logs begin with 1
const moment = () => (asked.get("at") === "end" ? end : Number(asked.get("at")));
const engine = lines.find((line) => line[3] === "Ready")?.[2] ?? "";

if (asked.has("break")) {
  const view = VIEWS[asked.get("break")];
  const { create } = view;
  view.create = (...given) => {
    const made = create(...given);
    made.update = () => {
      throw new Error("<b>broken</b>\u202e");
    };
    return made;
  };
}

/** A model as ipywidgets have them, with what our widgets use. */
export class Model {
  constructor(state, manager) {
    this.state = state;
    this.widget_manager = manager;
    this.handlers = new Map();
    this.sent = [];
  }
  get(name) {
    return this.state[name];
  }
  set(name, value) {
    this.state[name] = value;
    this.trigger(`change:${name}`);
  }
  on(names, fn) {
    for (const name of names.split(" ")) this.handlers.set(name, [...(this.handlers.get(name) ?? []), fn]);
  }
  off(names, fn) {
    for (const name of names.split(" ")) this.handlers.set(name, (this.handlers.get(name) ?? []).filter((other) => other !== fn));
  }
  trigger(name, ...values) {
    for (const fn of this.handlers.get(name) ?? []) fn(...values);
  }
  send(message) {
    this.sent.push(message);
    this.heard?.(message);
  }
}

const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

async function packed(value) {
  const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate"));
  return new DataView(await new Response(stream).arrayBuffer());
}

/** Tell the log through the widgets, `?step=` lines at a time, as a kernel does ten times a second. */
async function tell() {
  const models = new Map();
  const manager = { get_model: async (id) => models.get(id) };
  const session = new Model({ engine }, manager);
  const view = new Model({ session: "", source, engine, title: asked.get("title") ?? "a run", show, final: "" }, manager);
  models.set("s", session);
  let n = 0;
  session.heard = (message) => {
    if (message.do === "ping" && asked.get("pong") !== "no") session.trigger("msg:custom", { v: 1, kind: "pong", n: ++n, id: message.id }, []);
  };
  view_stub.initialize({ model: view });
  view_stub.render({ model: view, el });
  widget.initialize({ model: session });
  view.set("session", "s");
  const step = Number(asked.get("step") ?? 20);
  const until = asked.has("at") ? moment() : lines.length;
  for (let at = 0; at < until; at += step) {
    const some = lines.slice(at, Math.min(at + step, until));
    session.trigger("msg:custom", { v: 1, kind: "delta", n: ++n, from: some[0][0], to: some.at(-1)[0] }, [await packed(some)]);
    await new Promise((done) => setTimeout(done, Number(asked.get("pause") ?? 100)));
  }
  if (asked.has("final")) view.set("final", await final(end));
  return { session, view };
}

/** What a kernel keeps of a run that is over: base64 of deflated JSON. */
async function final(until) {
  const { buffer } = await packed({ events: lines.slice(0, until), base: null });
  return btoa(String.fromCharCode(...new Uint8Array(buffer)));
}

if (asked.get("mode") === "live") globalThis.host = await tell();
else {
  const store = new Store(Feed.of_log(lines), { source, engine, replay: true, title: asked.get("title") ?? "a run" });
  const shell = mount(el, store, { show, title: store.title });
  if (asked.has("at")) store.seek(moment());
  globalThis.host = { store };
  while (shell.is_beginning) await frame();
}
for (let n = 0; n < 5; n++) await frame(); // what is out of sight comes later
document.body.dataset.ready = "yes";
