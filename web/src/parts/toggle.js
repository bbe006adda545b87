// A button that turns a setting of a store on and off.
//
// Not here: what the setting does (the views).

import { buttons, press } from "./dom.js";

/** {element, show()}: `show()` tells how the setting is now. */
export function create_toggle(doc, store, setting, text, title) {
  const turn = () => store.set({ [setting]: !store.settings[setting] });
  const element = buttons(doc)(text, title, turn, { "aria-pressed": "false" });
  return { element, show: () => press(element, Boolean(store.settings[setting])) };
}
