// Stores for tests of views: of a saved log, or of one that grows while the test goes on.

import { Feed } from "../src/feed.js";
import { Store } from "../src/store.js";
import { lines_of } from "./fixtures.js";

/** A store that replays the saved log of this name. */
export function saved_store(name, options = {}) {
  return new Store(Feed.of_log(lines_of(name)), { replay: true, ...options });
}

/** {store, feed, push(lines), sent}: what is pushed arrives as a delta; `sent` has what views sent to the kernel. */
export function live_store(options = {}) {
  const sent = [];
  const feed = new Feed({ send: (message) => sent.push(message) });
  const store = new Store(feed, options);
  const push = (lines) => lines.length && feed.take_delta(lines, lines[0][0], lines.at(-1)[0]);
  return { store, feed, push, sent };
}

/** When the store has told of its changes. */
export function settled() {
  return new Promise((resolve) => setTimeout(resolve, 40));
}
