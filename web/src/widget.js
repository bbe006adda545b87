// The widget of a session: it is never displayed; it takes the kernel's messages and draws in the outputs of views.
//
// Views find it by an event on its model (view_stub.js): `model.trigger("nbs:session", (session) => ...)`.
//
// Not here: the session itself (session.js).

import { Session } from "./session.js";

function initialize({ model }) {
  const session = new Session({ send: (message) => model.send(message), interrupt: interrupt_of(model) });
  const heard = (content, buffers) => session.receive(content, buffers);
  const asked = (answer) => answer(session);
  model.on("msg:custom", heard);
  model.on("nbs:session", asked);
  session.begin();
  return () => {
    model.off("msg:custom", heard);
    model.off("nbs:session", asked);
    session.close();
  };
}

/** What interrupts the kernel, where the front end has a way to it (JupyterLab and Notebook have); else null. */
function interrupt_of(model) {
  const kernel = () => model.widget_manager?.kernel;
  return typeof kernel()?.interrupt === "function" ? () => kernel()?.interrupt() : null;
}

export default { initialize };
