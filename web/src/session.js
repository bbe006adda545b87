// One engine and its runs in the front end: the feed that the kernel's messages fill, and the outputs that show it.
//
// Not here: the widget around it (widget.js), what an output looks like (shell.js).

import { Feed } from "./feed.js";
import { mount } from "./shell.js";
import { Store } from "./store.js";
import { bytes_of, Receiver, unpacked } from "./wire.js";

const PONG_MS = 1500; // no answer for so long: clicks do not reach the kernel while a cell runs
const CANCEL_MS = 400; // the same for who waits for a run to be cancelled
const PING_EVERY_MS = 5000;

export class Session {
  /** `send` takes a message to the kernel; `interrupt()` stops the cell that runs, or is null. */
  constructor({ send, interrupt = null }) {
    this.feed = new Feed({ send: (message) => this._ask(message) });
    this._send = send;
    this._interrupt = interrupt;
    this._is_deaf = false; // the kernel hears nothing while a cell runs
    this._stopping = null; // the source of a run that somebody has asked to cancel, until the kernel has heard it
    this._stores = new Set();
    this._can_cancel = null;
    this._over = new Map(); // from a run's source to the seq of its end
    this._ping = 0;
    this._timer = null;
    this._next_ping = 0;
    this._receiver = new Receiver({
      feed_of: () => this.feed,
      on_other: (content) => this._hear(content),
      on_error: (error) => console.warn("nbsglang: a message was not understood:", error),
    });
    this._off = this.feed.on(() => this._look());
  }

  /** Ask for the state. */
  begin() {
    this._send({ do: "resync" });
  }

  /** Take a message of the kernel. */
  receive(content, buffers) {
    return this._receiver.take(content, buffers);
  }

  /** Show a run (or with source "" the engine) in an element. Returns {store, update(traits), destroy()}. */
  render(el, traits) {
    const store = new Store(this.feed, { ...traits, can_cancel: this._can_cancel });
    this._stores.add(store);
    const shell = mount(el, store, { show: traits.show ?? [], title: traits.title ?? "" });
    const update = ({ final, state }) => {
      if (state) store.set({ outcome: state });
      if (final) this._settle(store, final);
    };
    update(traits);
    this._settle_over();
    return {
      store,
      update,
      destroy: () => {
        this._stores.delete(store);
        shell.destroy();
        store.destroy();
      },
    };
  }

  close() {
    this._off();
    clearTimeout(this._timer);
    for (const store of this._stores) store.set_can_cancel(false);
  }

  /** The run is over: show what was kept of it. It stays as it is, whatever the engine does later. */
  async _settle(store, final) {
    try {
      const { events, base } = await unpacked(bytes_of(final));
      if (this._stores.has(store)) store.replace(Feed.of_log(events, base), { replay: true });
    } catch (error) {
      console.warn("nbsglang: what was kept of a run cannot be read:", error);
    }
  }

  /** Runs that are over and of which nothing was kept, since it was too much, stay as they were when they ended. */
  _settle_over() {
    for (const store of this._stores) {
      const last = this._over.get(store.source);
      if (store.replay || last === undefined || last > this.feed.live.seq) continue;
      const [first] = store.range;
      if (first < last) store.replace(this.feed.excerpt(first, last), { replay: true });
    }
  }

  _hear(content) {
    if (content.kind === "over") {
      this._over.set(content.source, content.to);
      this._settle_over();
    }
    if (content.kind === "pong" && content.id === this._ping) this._answered();
  }

  /** While something happens, find out whether a click would reach the kernel, and let it know that somebody looks. */
  _look() {
    this._settle_over();
    if (Date.now() >= this._next_ping) this._probe(PONG_MS);
  }

  _probe(most_ms) {
    this._next_ping = Date.now() + PING_EVERY_MS;
    this._ping += 1;
    this._send({ do: "ping", id: this._ping });
    clearTimeout(this._timer);
    this._timer = setTimeout(() => this._unanswered(), most_ms);
  }

  /** Who was deaf once must have heard something while a run goes on: between cells every kernel hears. */
  _answered() {
    const is_late = this._timer === null;
    clearTimeout(this._timer);
    this._timer = null;
    this._stopping = null;
    if (!this._is_deaf || (!is_late && this._goes_on())) this._tell(true);
  }

  _unanswered() {
    this._timer = null;
    const source = this._stopping;
    this._stopping = null;
    this._tell(false);
    if (source !== null && this._goes_on(source)) this._interrupt();
  }

  /** Whether this run does, or any. */
  _goes_on(source = null) {
    for (const stream of this.feed.live.streams.values())
      if (!stream.ended && (source === null || stream.source === source)) return true;
    return false;
  }

  /** What a view asks for. A kernel that does not hear it while the cell runs can still be interrupted. */
  _ask(message) {
    const can_interrupt = message.do === "cancel" && this._interrupt !== null;
    if (can_interrupt && this._is_deaf) return this._interrupt();
    this._send(message);
    if (!can_interrupt) return;
    this._stopping = message.source ?? this.feed.live.streams.get(message.stream)?.source ?? null;
    this._probe(message.stream ? PONG_MS : CANCEL_MS);
  }

  _tell(is_heard) {
    this._is_deaf = !is_heard;
    const can = is_heard || this._interrupt !== null;
    this._can_cancel = can;
    for (const store of this._stores) store.set_can_cancel(can);
  }
}
