// The widget of one output: small, since a saved notebook holds one for each. It finds its session and lets it draw, in
// the places of its output's HTML (anchor.js), or where the front end displays the widget itself.

import { anchored } from "./anchor.js";

const TRAITS = ["source", "engine", "title", "show", "final", "state"];
const AGAIN_MS = [150, 300, 600, 1500, 4000];
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

/** Say hello until there is a session. JupyterLab asks a kernel for a shell beside the busy one when it sees its first
 * widget, and what is said before it has one waits for the end of the cell. */
function greet(model) {
  const hello = () => model.get("session") || model.send({ do: "hello" });
  hello();
  const timers = AGAIN_MS.map((ms) => setTimeout(hello, ms));
  return () => timers.forEach(clearTimeout);
}

async function session_of(model, is_over) {
  for (let n = 0; n < 200 && !is_over(); n++) {
    const id = model.get("session");
    const other = id ? await model.widget_manager.get_model(id).catch(() => null) : null;
    let found = null;
    other?.trigger("nbs:session", (session) => (found = session));
    if (found) return found;
    await (id ? wait(50) : new Promise((done) => model.on("change:session", done)));
  }
  return null;
}

function draw(model, el, on_drawn = () => {}) {
  let over = false;
  let drawn = null;
  const traits = () => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const update = () => drawn?.update(traits());
  session_of(model, () => over).then((session) => {
    if (over || !session) return;
    drawn = session.render(el, traits());
    model.on("change:final change:state", update);
    on_drawn();
  });
  return () => {
    over = true;
    model.off("change:final change:state", update);
    drawn?.destroy();
  };
}

export default {
  initialize({ model }) {
    const stops = [greet(model), anchored(model, (el, on_drawn) => draw(model, el, on_drawn))];
    return () => stops.forEach((stop) => stop());
  },
  render: ({ model, el }) => draw(model, el),
};
