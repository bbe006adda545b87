// A page of its own that replays a log: it reads {events, base, source, engine, title, show} from its own text.
//
// The page holds <script type="application/json" id="nbsglang-log">"…"</script> with base64 of deflated JSON, and
// <div id="nbsglang"></div>.

import { Feed } from "./feed.js";
import { mount } from "./shell.js";
import { Store } from "./store.js";
import { ALL } from "./views/index.js";
import { bytes_of, unpacked } from "./wire.js";

async function begin() {
  const el = document.getElementById("nbsglang");
  try {
    const held = JSON.parse(document.getElementById("nbsglang-log").textContent);
    const { events, base = null, source = "", engine = "", title = "", show = ALL } = await unpacked(bytes_of(held));
    const store = new Store(Feed.of_log(events, base), { source, engine, title, replay: true });
    document.body.classList.add("nbs-page"); // with :has() in a style sheet, all changes of the page are slower
    mount(el, store, { show, title, is_page: true });
    globalThis.nbsglang_store = store; // for who looks at the page with a console
  } catch (error) {
    el.textContent = `This page cannot show its log: ${error.message}`;
  }
}

begin();
