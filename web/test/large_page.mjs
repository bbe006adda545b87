// A page with a made-up log of ten thousand nodes and 64 streams, for tests in a browser.

/** {page, errors}: the page once the views that `show` names are drawn, and what goes wrong on it. */
export async function opened_large(browser, server, show) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(`${server.url}/dev/bench.html?updates=0&show=${show}`);
  await page.waitForFunction(() => globalThis.result);
  return { page, errors };
}
