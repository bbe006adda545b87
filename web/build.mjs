// Builds nbsglang/viz/static from src: `node build.mjs [FOLDER]`. The same sources give the same bytes.
//
// The bundles are for browsers as old as two years, have no source maps, and fetch nothing.

import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { BANNER } from "./banner.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.resolve(process.argv[2] ?? path.join(here, "..", "nbsglang", "viz", "static"));

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  charset: "utf8",
  target: ["es2022"],
  legalComments: "none",
  banner: BANNER,
  logLevel: "warning",
};

for (const [entry, name, format] of [
  ["src/widget.js", "widget.js", "esm"], // the session: state and all views
  ["src/view_stub.js", "view.js", "esm"], // what each output carries
  ["src/page.js", "page.js", "iife"], // for a page of its own
])
  await build({ ...common, entryPoints: [entry], outfile: path.join(target, name), format });
