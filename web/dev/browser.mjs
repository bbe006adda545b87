// The machine's Chromium for pictures and measurements: NBSGLANG_CHROMIUM names it, else it is looked for.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const ARGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--force-color-profile=srgb", "--font-render-hinting=none",
];

/** The browser, started; throws when there is none. */
export function launch() {
  const executablePath = process.env.NBSGLANG_CHROMIUM ?? PLACES.find(existsSync);
  if (executablePath === undefined) throw new Error("there is no Chromium on this machine");
  return chromium.launch({ executablePath, args: ARGS });
}
