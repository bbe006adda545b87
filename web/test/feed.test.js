// A feed has the same state as who folds the whole log, also when messages are lost; and it can go back to any event.

import assert from "node:assert/strict";
import test from "node:test";
import { deflateSync } from "node:zlib";

import { event_of } from "../src/events.js";
import { Feed } from "../src/feed.js";
import { dump, restore } from "../src/fold/dump.js";
import { fold } from "../src/fold/view.js";
import { Receiver } from "../src/wire.js";
import { lines_of, NAMES, plain } from "./fixtures.js";

/** The dump without the marks that a feed watches for each run, and without what counts changes only. */
function bare(view) {
  const state = plain(dump(view));
  state.tree.watched = {};
  return state;
}

function packed(value) {
  return new Uint8Array(deflateSync(JSON.stringify(value), { level: 1 }));
}

function delta(n, lines) {
  return [{ v: 1, kind: "delta", n, from: lines[0][0], to: lines.at(-1)[0] }, [packed(lines)]];
}

function key(n, lines) {
  const view = fold(lines.map(event_of));
  return [{ v: 1, kind: "key", n, from: 1, to: view.seq }, [packed(dump(view))]];
}

/** Numbers that look random and are the same each time. */
function random(seed) {
  return () => ((seed = (seed * 48271) % 2147483647) - 1) / 2147483646;
}

for (const name of NAMES) {
  const lines = lines_of(name);

  test(`${name}: half of the messages are swallowed, and the state is right after the next keyframe`, async () => {
    const chance = random(7);
    const asked = [];
    const feed = new Feed({ send: (message) => asked.push(message.do) });
    const receiver = new Receiver({ feed_of: () => feed, on_error: (error) => assert.fail(error) });
    let n = 0;
    let n_lost = 0;
    for (let at = 0; at < lines.length; at += 10) {
      const some = lines.slice(at, at + 10);
      n += 1;
      if (chance() < 0.5) n_lost += 1;
      else await receiver.take(...delta(n, some));
      if (at % 100 !== 90) continue;
      const all = lines.slice(0, at + some.length);
      await receiver.take(...key(++n, all));
      assert.ok(!feed.waiting);
      assert.deepEqual(bare(feed.live), bare(fold(all.map(event_of))));
    }
    assert.ok(n_lost > 3 && asked.includes("resync"));
  });

  test(`${name}: the state at any event is what a fold up to there gives`, () => {
    const feed = Feed.of_log(lines);
    let near = null;
    for (const at of [0, 1, 5, Math.floor(lines.length / 3), lines.length - 1, 3, lines.length]) {
      const seq = at ? lines[at - 1][0] : lines[0][0] - 1;
      near = feed.at(seq, near);
      const wanted = fold(lines.slice(0, at).map(event_of));
      wanted.texts = near.texts; // shared by all moments
      wanted.seq = near.seq;
      assert.deepEqual(bare(near), bare(wanted), `at ${seq}`);
    }
  });

  test(`${name}: messages are taken in their order, whatever is ready first`, async () => {
    const feed = new Feed();
    const receiver = new Receiver({ feed_of: () => feed, on_error: (error) => assert.fail(error) });
    const half = Math.floor(lines.length / 2);
    receiver.take(...delta(1, lines.slice(0, half))); // the long one is not waited for
    receiver.take(...delta(2, lines.slice(half, half + 1)));
    await receiver.take(...delta(3, lines.slice(half + 1)));
    assert.deepEqual(bare(feed.live), bare(fold(lines.map(event_of))));
    assert.ok(!feed.waiting);
  });
}

test("the past of a log with gaps has them where they were", () => {
  for (const name of NAMES) {
    const all = lines_of(name);
    const lines = [...all.slice(0, Math.floor(all.length / 4)), ...all.slice(Math.floor(all.length / 3))];
    const told = new Feed();
    for (let at = 0; at < lines.length; at += 9) {
      const some = lines.slice(at, at + 9);
      const cut = some.findIndex((line, n) => n > 0 && line[0] !== some[n - 1][0] + 1);
      for (const part of cut > 0 ? [some.slice(0, cut), some.slice(cut)] : [some]) told.take_delta(part, part[0][0], part.at(-1)[0]);
    }
    for (const feed of [told, Feed.of_log(lines)])
      for (const at of [3, Math.floor(all.length / 4), Math.floor(all.length / 4) + 1, lines.length]) {
        const wanted = fold(lines.slice(0, at).map(event_of));
        const view = feed.at(lines[at - 1][0]);
        wanted.texts = view.texts;
        assert.deepEqual(bare(view), bare(wanted), `${name} at ${at}`);
      }
    const excerpt = Feed.of_log(lines).excerpt(lines[2][0], lines.at(-1)[0]);
    assert.deepEqual([excerpt.live.n_lost, excerpt.live.complete], [told.live.n_lost, told.live.complete]);
    assert.ok(told.waiting && told.live.n_lost > 0);
  }
});

test("events of others are no gap, missing ones are", () => {
  const lines = lines_of("judge");
  const asked = lines.filter((line) => line[3] === "StreamRole").slice(0, 3);
  const feed = new Feed();
  feed.take_delta(asked, 1, 200);
  assert.deepEqual([feed.live.n_lost, feed.live.complete, feed.live.seq, feed.waiting], [0, true, 200, false]);
  feed.take_delta([], 210, 220);
  assert.deepEqual([feed.live.n_lost, feed.live.complete, feed.live.seq, feed.waiting], [9, false, 220, true]);
});

test("a message that cannot be read is told of, and the next one is taken all the same", async () => {
  const lines = lines_of("mock");
  const errors = [];
  const feed = new Feed();
  const receiver = new Receiver({ feed_of: () => feed, on_error: (error) => errors.push(error) });
  await receiver.take({ v: 1, kind: "delta", n: 1, from: 1, to: 2 }, [new Uint8Array([1, 2, 3])]);
  await receiver.take({ v: 9, kind: "delta", n: 1, from: 1, to: 2 }, []);
  await receiver.take(null, []);
  await receiver.take(...delta(1, lines));
  assert.equal(errors.length, 1);
  assert.equal(feed.live.seq, lines.at(-1)[0]);
});

test("a long log keeps its newest events, and the states that can be shown are right", () => {
  const lines = lines_of("crowd");
  const feed = new Feed({ max_events: 500 });
  for (let at = 0; at < lines.length; at += 7) {
    const some = lines.slice(at, at + 7);
    feed.take_delta(some, some[0][0], some.at(-1)[0]);
  }
  assert.ok(feed.events.length <= 2000 && feed.events.length < lines.length);
  const [first, last] = feed.range;
  assert.equal(last, lines.at(-1)[0]);
  assert.ok(first > 1 && feed.events[0].seq === first + 1);
  for (const seq of [first, first + 1, Math.floor((first + last) / 2), last]) {
    const wanted = fold(lines.filter((line) => line[0] <= seq).map(event_of));
    const view = feed.at(seq);
    wanted.texts = view.texts;
    assert.deepEqual(bare(view), bare(wanted), `at ${seq}`);
  }
});

test("a run's marks begin with it, end with it, and outlive a keyframe", () => {
  const lines = lines_of("judge");
  const [first, second] = [...new Set(lines.filter((line) => line[3] === "StreamBegan").map((line) => line[2]))];
  const begins = lines.findIndex((line) => line[2] === second);
  const feed = new Feed();
  feed.take_delta(lines.slice(0, begins), 1, lines[begins - 1][0]);
  const marks = feed.live.marks_of(first);
  const n_new = marks.new.size;
  assert.ok(n_new > 3);
  assert.equal(feed.live.marks_of(second), undefined);
  feed.take_delta(lines.slice(begins), lines[begins][0], lines.at(-1)[0]);
  assert.equal(feed.live.marks_of(first).new.size, n_new);
  assert.ok(feed.live.marks_of(second).hits.size > 3);
  feed.waiting = true;
  feed.take_key(plain(dump(restore(bare(feed.live)))));
  assert.equal(feed.live.marks_of(first).new.size, n_new);
});

test("a keyframe of a state that is known tells nothing new", () => {
  const lines = lines_of("mock");
  const feed = Feed.of_log(lines);
  assert.ok(!feed.wants_key(feed.live.seq));
  assert.ok(feed.wants_key(feed.live.seq + 1));
});

test("what no dump tells outlives a keyframe: where branches were forked, what was cached; of what was lost nothing is claimed", () => {
  const lines = lines_of("judge");
  const known = (view) => [...view.streams.values()].map(({ forked_at, calls }) => [forked_at, ...[...calls.values()].map(({ n_before, requests }) => [n_before, ...requests.map(({ hit }) => hit)])]);
  const whole = Feed.of_log(lines).live;
  assert.ok(known(whole).filter(([forked_at]) => forked_at !== null).length > 4);
  assert.ok([...whole.requests.values()].filter(({ hit, n_hit }) => hit !== null && hit.flat().length === n_hit).length > 10);
  const feed = Feed.of_log(lines);
  feed.waiting = true;
  feed.take_key(plain(dump(feed.live)));
  assert.deepEqual(known(feed.live), known(whole));

  const torn = new Feed();
  const at = lines.findLastIndex((line) => line[3] === "StreamBegan" && line[4].parent === "") + 1;
  torn.take_delta(lines.slice(0, at - 20), 1, lines[at - 21][0]);
  torn.take_delta(lines.slice(at + 1), lines[at + 1][0], lines.at(-1)[0]); // without some before, and its first event
  torn.take_key(plain({ ...dump(whole), seq: whole.seq + 1 }));
  const last = [...torn.live.streams.values()].at(-1);
  assert.deepEqual([...last.calls.values()].map((call) => call.n_before), [...last.calls.values()].map(() => null));
});

test("a state that is copied later is the one of the keyframe, whatever comes in between", () => {
  const lines = lines_of("crowd");
  const feed = new Feed();
  const some = lines.slice(0, 900);
  feed.take_delta(some, 1, some.at(-1)[0]);
  feed.take_delta(lines.slice(950, 1000), lines[950][0], lines[999][0]);
  const key = plain(dump(fold(lines.slice(0, 1000).map(event_of))));
  feed.take_key({ ...key, seq: lines[999][0] });
  feed.take_delta(lines.slice(1000), lines[1000][0], lines.at(-1)[0]); // at once: the copy was not made yet
  const wanted = fold(lines.slice(0, 1200).map(event_of));
  const view = feed.at(lines[1199][0]);
  wanted.texts = view.texts;
  for (const each of [view, wanted]) each.tree.watched.clear();
  assert.deepEqual(bare(view), bare(wanted));
});
