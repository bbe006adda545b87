// The saved logs and what Python made of them (tests/viz/fixtures.py), for tests.

import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("./fixtures/", import.meta.url);

export const NAMES = readdirSync(FOLDER).filter((name) => name.endsWith(".jsonl")).map((name) => name.slice(0, -6)).sort();

/** The lines of a saved log, as EventLog.save writes them: [seq, t_ns, source, kind, fields]. */
export function lines_of(name) {
  return readFileSync(new URL(`${name}.jsonl`, FOLDER), "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** {on_the_way: [dump, ...], late: dump} of a saved log. */
export function dumps_of(name) {
  return JSON.parse(readFileSync(new URL(`${name}.dump.json`, FOLDER), "utf8"));
}

/** Plain values only, so that two states can be compared. */
export function plain(value) {
  return JSON.parse(JSON.stringify(value));
}
