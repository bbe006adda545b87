// How large a view is: its folder of sources, for who reads it; and what is shipped, since a saved notebook holds it: the
// bytes in the bundle, of a view with the parts that it alone uses, by itself or through other parts.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const WEB = dirname(dirname(fileURLToPath(import.meta.url)));
const VIEWS = join(WEB, "src", "views");
const MOST = 60_000; // bytes of a view, of either

const folders = readdirSync(VIEWS, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name);

/** What the bundle is made of: {file: {bytes, imports}}, by paths below src. */
async function contents() {
  const options = { entryPoints: [join(WEB, "src", "page.js")], absWorkingDir: WEB, bundle: true, minify: true, metafile: true, write: false, charset: "utf8", logLevel: "error" };
  const { metafile } = await build(options);
  const [{ inputs }] = Object.values(metafile.outputs);
  const short = (file) => relative(join(WEB, "src"), join(WEB, file));
  return new Map(Object.entries(metafile.inputs).map(([file, { imports }]) => [
    short(file), { bytes: inputs[file]?.bytesInOutput ?? 0, imports: imports.map((each) => short(each.path)) },
  ]));
}

/** The parts that nothing but this view uses. */
function own_parts(files, name) {
  const own = new Set([...files.keys()].filter((file) => file.startsWith("parts/")));
  const is_own = (file) => own.has(file) || file.startsWith(`views/${name}/`);
  for (let n = -1; n !== own.size; ) {
    n = own.size;
    for (const [file, { imports }] of files) if (!is_own(file)) for (const each of imports) own.delete(each);
  }
  return [...own];
}

test("the sources of a view take less than 60 kB", () => {
  assert.ok(folders.length >= 6);
  for (const name of folders) {
    const files = readdirSync(join(VIEWS, name), { recursive: true }).filter((file) => file.endsWith(".js"));
    const size = files.reduce((sum, file) => sum + readFileSync(join(VIEWS, name, file)).length, 0);
    assert.ok(size > 0 && size < MOST, `${name}: ${size} bytes`);
  }
});

test("a view takes less than 60 kB in the bundle, with the parts that it alone uses", async () => {
  const files = await contents();
  for (const name of folders) {
    const parts = own_parts(files, name);
    const all = [...[...files.keys()].filter((file) => file.startsWith(`views/${name}/`)), ...parts];
    const size = all.reduce((n, file) => n + files.get(file).bytes, 0);
    assert.ok(size > 0 && size < MOST, `${name}: ${size} bytes with ${parts.join(", ")}`);
  }
});
