// The order of lanes: each stream, below it its branches, and below those what the stream goes on with after them.
//
// A row is {key, stream, depth, from, to, is_head, rails, after}: it shows the parts [from, to) of its
// stream. `rails[i]` says whether the line below the ancestor at depth i goes on past this row (the deepest
// ones left out); `after` counts the branches that a row goes on after.
//
// Not here: how rows look (row.js).

export const MAX_DEPTH = 8; // deeper lanes are indented no further

/** The rows of a run (of all runs for ""), top to bottom. */
export function rows_of(view, source) {
  const streams = view.streams_of(source);
  const below = new Map(streams.map((stream) => [stream.id, []]));
  const tops = streams.filter((stream) => {
    const siblings = below.get(stream.parent);
    siblings?.push(stream);
    return siblings === undefined;
  });
  const lane = (stream, depth, rails) => steps(stream, depth, rails, groups(below.get(stream.id)));
  const rows = [];
  const todo = tops.map((stream) => () => lane(stream, 0, [])).reverse(); // not by recursion: a log may nest deeply
  while (todo.length) {
    const next = todo.pop();
    if (typeof next === "function") todo.push(...next().reverse());
    else rows.push(next);
  }
  return rows;

  /** Rows of one stream, and between them functions that give those of its branches. */
  function steps(stream, depth, rails, forks) {
    const list = [];
    let from = 0;
    forks.forEach(({ at, branches }, i) => {
      if (!i || from < at) list.push(row(stream, depth, rails, i, from, at, i && forks[i - 1].branches.length));
      from = at;
      const goes_on = i + 1 < forks.length || continues(stream, at);
      branches.forEach((branch, n) => {
        const is_last = !goes_on && n === branches.length - 1;
        list.push(() => lane(branch, depth + 1, depth < MAX_DEPTH ? [...rails, !is_last] : rails));
      });
    });
    const after = forks.at(-1)?.branches.length ?? 0;
    if (!forks.length || continues(stream, from)) list.push(row(stream, depth, rails, forks.length, from, Infinity, after));
    return list;
  }
}

/** Whether the stream has something to show from part `at` on, or may soon. */
function continues(stream, at) {
  return at < Infinity && (stream.parts.length > at || (!stream.ended && stream.open_call !== null));
}

/** The branches of a stream by the forks that made them, in order: [{at, branches}]. */
function groups(branches) {
  const found = [];
  for (const branch of branches) {
    const last = found.at(-1);
    if (last === undefined || branch.branch <= last.branches.at(-1).branch) found.push({ at: Infinity, branches: [branch] });
    else last.branches.push(branch);
  }
  let least = 0;
  for (const fork of found) {
    const known = fork.branches.map((branch) => branch.forked_at).filter((at) => at !== null);
    fork.at = known.length ? Math.max(least, Math.min(...known)) : Infinity;
    least = fork.at;
  }
  return found;
}

function row(stream, depth, rails, number, from, to, after) {
  return { key: `${number}:${stream.id}`, stream, depth, from, to, is_head: number === 0, rails, after };
}

/** The rows of at most `limit` streams, rather of `wanted` and those that failed or run; and the streams left out. */
export function limited(rows, limit, wanted = null) {
  const heads = rows.filter((each) => each.is_head);
  if (heads.length <= limit) return { rows, left: [] };
  const ranked = heads.map(({ stream, depth }, i) => [stream.id === wanted ? -1 : rank(stream, depth), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const chosen = new Set(ranked.slice(0, limit).map(([, i]) => heads[i].stream));
  return { rows: rows.filter(({ stream }) => chosen.has(stream)), left: heads.map((each) => each.stream).filter((stream) => !chosen.has(stream)) };
}

/** The rows of streams that failed, and those of the streams above them. */
export function failed_only(rows, streams) {
  const wanted = new Set();
  for (const { stream } of rows) {
    if (stream.state !== "failed") continue;
    for (let at = stream; at !== undefined && !wanted.has(at.id); at = streams.get(at.parent)) wanted.add(at.id);
  }
  return rows.filter(({ stream }) => wanted.has(stream.id));
}

function rank(stream, depth) {
  if (!depth) return 0;
  return { failed: 1, running: 2, waiting: 3 }[stream.state] ?? 4;
}
