// How large the sources of a view are: its folder as it is written, and as the bundle has it.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const WEB = dirname(dirname(fileURLToPath(import.meta.url)));
const VIEWS = join(WEB, "src", "views");
const MOST = 60_000; // bytes
const MOST_OF_TREE = 75_000; // as it is written; its bundle keeps to the limit of all

const folders = readdirSync(VIEWS, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name);

test("a view has at most 60 kB of source of its own", () => {
  assert.ok(folders.length >= 5);
  for (const name of folders) {
    const files = readdirSync(join(VIEWS, name), { recursive: true }).filter((file) => file.endsWith(".js"));
    const size = files.reduce((sum, file) => sum + readFileSync(join(VIEWS, name, file)).length, 0);
    assert.ok(size > 0 && size <= (name === "tree" ? MOST_OF_TREE : MOST), `${name}: ${size} bytes`);
  }
});

test("in the bundle a view takes less than 60 kB", async () => {
  const options = { entryPoints: [join(WEB, "src", "page.js")], bundle: true, minify: true, metafile: true, write: false, charset: "utf8", logLevel: "error" };
  const { metafile } = await build(options);
  const [{ inputs }] = Object.values(metafile.outputs);
  for (const name of folders) {
    const own = Object.entries(inputs).filter(([file]) => file.includes(`/views/${name}/`));
    const size = own.reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0);
    assert.ok(size > 0 && size <= MOST, `${name}: ${size} bytes`);
  }
});
