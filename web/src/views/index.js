// The views by the names that `--show` knows, in the order in which they are shown. The time bar comes with the tree.

import * as fsm from "./fsm/index.js";
import * as numbers from "./numbers/index.js";
import * as streams from "./streams/index.js";
import * as time from "./time/index.js";
import * as timeline from "./timeline/index.js";
import * as tree from "./tree/index.js";

export const VIEWS = {
  numbers: { title: "Numbers", ...numbers },
  streams: { title: "Streams", ...streams },
  tree: { title: "Radix tree", ...tree },
  time: { title: "Time", ...time },
  timeline: { title: "Timeline", ...timeline },
  fsm: { title: "Constraint", ...fsm },
};

export const ALL = Object.keys(VIEWS);
