// Serves the folder web/ to this machine alone, dev/*.js as bundles: `node dev/serve.mjs [PORT]`, or serve(port).

import { build } from "esbuild";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { BANNER } from "../banner.mjs";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript" };

/** {url, close()}. Port 0 takes any that is free; bundles are made once where `is_kept` says so. */
export async function serve({ port = 0, is_kept = false } = {}) {
  const kept = new Map();
  const server = createServer(async (request, response) => {
    const at = new URL(request.url, "http://localhost").pathname;
    const file = path.join(ROOT, path.normalize(at));
    try {
      if (!file.startsWith(ROOT + path.sep)) throw new Error("outside");
      const is_script = /^\/dev\/[a-z]+\.js$/.test(at);
      let body = kept.get(at);
      if (body === undefined) kept.set(at, (body = await (is_script ? bundled(file) : readFile(file))));
      if (!is_kept) kept.clear();
      response.writeHead(200, { "content-type": `${TYPES[path.extname(file)] ?? "text/plain"}; charset=utf-8` });
      response.end(body);
    } catch {
      response.writeHead(404);
      response.end();
    }
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

async function bundled(file) {
  const built = await build({ entryPoints: [file], bundle: true, format: "esm", write: false, sourcemap: "inline", logLevel: "warning", banner: BANNER });
  return built.outputFiles[0].contents;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await serve({ port: Number(process.argv[2] ?? 8123) })).url);
