// A click on cancel stops a run, also where the kernel hears nothing while a cell runs: then it is interrupted.

import assert from "node:assert/strict";
import test from "node:test";

import { Session } from "../src/session.js";
import { lines_of } from "./fixtures.js";

const PONG = (id) => ({ v: 1, kind: "pong", id });

/** Timers that `tick` lets pass, in the place of the real ones until `reset`. */
const clock = {
  real: { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout },
  begin() {
    this.now = 0;
    this.timers = new Map();
    globalThis.setTimeout = (act, ms) => (this.timers.set((this.id = (this.id ?? 0) + 1), { at: this.now + ms, act }), this.id);
    globalThis.clearTimeout = (id) => this.timers.delete(id);
  },
  tick(ms) {
    this.now += ms;
    for (const [id, { at, act }] of [...this.timers]) if (at <= this.now && this.timers.delete(id)) act();
  },
  reset() {
    Object.assign(globalThis, this.real);
  },
};

/** A session with a run that goes on, what it has sent, and how often it has interrupted. */
function session_of({ can_interrupt = true } = {}) {
  const sent = [];
  const seen = { n_interrupts: 0 };
  const session = new Session({ send: (message) => sent.push(message), interrupt: can_interrupt ? () => (seen.n_interrupts += 1) : null });
  const lines = lines_of("judge");
  const began = lines.findIndex((line) => line[3] === "StreamBegan") + 1;
  session.feed.take_delta(lines.slice(0, began), 1, lines[began - 1][0]);
  const source = lines[began - 1][2];
  const end = () => session.feed.take_delta(lines.slice(began), lines[began][0], lines.at(-1)[0]);
  const pings = () => sent.filter((message) => message.do === "ping");
  return { session, sent, seen, source, end, pings, cancel: () => session.feed.send({ do: "cancel", source }) };
}

/** What the kernel says, at once. */
const hear = (session, content) => session._hear(content);

function checked(name, act) {
  test(name, () => {
    clock.begin();
    try {
      act();
    } finally {
      clock.reset();
    }
  });
}

checked("a kernel that answers cancels by itself", () => {
  const { session, sent, seen, pings, cancel } = session_of();
  cancel();
  assert.ok(sent.some((message) => message.do === "cancel"));
  hear(session, PONG(pings().at(-1).id));
  clock.tick(10_000);
  assert.equal(seen.n_interrupts, 0);
});

checked("one that does not answer is interrupted within half a second, and at once from then on", () => {
  const { session, seen, pings, cancel } = session_of();
  cancel();
  clock.tick(399);
  assert.equal(seen.n_interrupts, 0);
  clock.tick(101);
  assert.equal(seen.n_interrupts, 1);
  hear(session, PONG(pings().at(-1).id)); // late: the cell has ended
  cancel();
  assert.equal(seen.n_interrupts, 2);
});

checked("a run that has ended meanwhile interrupts nothing", () => {
  const { seen, end, cancel } = session_of();
  cancel();
  end();
  clock.tick(10_000);
  assert.equal(seen.n_interrupts, 0);
});

checked("an answer between two cells does not say that the kernel hears while one runs", () => {
  const { session, seen, end, pings, cancel } = session_of();
  clock.tick(2000);
  end();
  session._next_ping = 0; // it is time for one
  session._look();
  hear(session, PONG(pings().at(-1).id));
  cancel();
  assert.equal(seen.n_interrupts, 1);
});

checked("without a way to interrupt, the button says so once the kernel is silent", () => {
  const { session, sent, cancel } = session_of({ can_interrupt: false });
  clock.tick(2000);
  assert.equal(session._can_cancel, false);
  cancel();
  assert.ok(sent.some((message) => message.do === "cancel"));
});
