// Moments of a log: which are worth a stop, and where one is after playing for some time.
//
// Not here: the cursor (store.js), what an event means in words (explain.js).

const PLAY_GAP_MS = 400; // silence in a log is shortened to this when it is played

/** Whether an event is worth a stop: a split, an eviction, a hit, the end of a request, a preemption. */
export function is_of_interest(event) {
  switch (event.kind) {
    case "NodeSplit":
    case "NodeEvicted":
    case "Finished":
    case "Preempted":
      return true;
    case "Admitted":
      return event.body.n_hit > 0;
    default:
      return false;
  }
}

/** {seq, left_ms, is_end}: where one is so many ms after event `seq`, and the ms that are left until the next event. */
export function later(feed, seq, ms) {
  const { events } = feed;
  let at = feed.place_after(seq);
  let t_ns = (events[at - 1] ?? events[at])?.t_ns;
  for (; at < events.length; at++) {
    const gap = Math.min(Math.max(events[at].t_ns - t_ns, 0) / 1e6, PLAY_GAP_MS);
    if (gap > ms) return { seq, left_ms: ms, is_end: false };
    ms -= gap;
    ({ t_ns, seq } = events[at]);
  }
  return { seq, left_ms: 0, is_end: true };
}
