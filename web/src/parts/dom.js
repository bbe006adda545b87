// Small helpers for elements. Texts only ever become text nodes and attributes.

/** An element: h("button", {class: "x", onclick: f, title: "…"}, "text", child). null children are left out. */
export function h(doc, tag, attributes = {}, ...children) {
  const element = doc.createElement(tag);
  if (tag === "button") element.type = "button";
  for (const name in attributes) {
    const value = attributes[name];
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** A function that makes buttons: (text, title, onclick, attributes). One whose text has words is called by them. */
export function buttons(doc) {
  return (text, title, onclick, attributes = {}) => h(doc, "button", { title, "aria-label": HAS_WORDS.test(text) ? null : title, onclick, ...attributes }, text);
}

const HAS_WORDS = /[\p{L}\p{N}]/u;

/** Whether a button is down. */
export function press(button, is_down) {
  button.setAttribute("aria-pressed", is_down);
}

/** Set the text only if it is another one, so that a screen reader is not told twice. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The beginning of ids of one view: ids are the page's, and there may be many views. */
export function prefix_of(name) {
  return `nbs-${name}-${Math.random().toString(36).slice(2, 10)}-`;
}

/** Buttons as one tab stop: the arrows, Home and End go from one to the next. */
export function toolbar(doc, label, ...children) {
  const bar = h(doc, "div", { role: "toolbar", "aria-label": label, class: "tools" }, ...children);
  const stops = () => [...bar.querySelectorAll("button")].filter((button) => !button.disabled && !button.hidden);
  const stop_at = (wanted) => {
    for (const button of bar.querySelectorAll("button")) button.tabIndex = button === wanted ? 0 : -1;
  };
  bar.addEventListener("focusin", (event) => event.target.tagName === "BUTTON" && stop_at(event.target));
  bar.addEventListener("keydown", (event) => {
    const all = stops();
    const i = all.indexOf(event.target);
    const next = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: all.length - 1 }[event.key];
    if (i < 0 || next === undefined || all[next] === undefined) return;
    event.preventDefault();
    stop_at(all[next]);
    all[next].focus();
  });
  bar.settle = () => { // a button that was the stop may have been disabled
    const all = stops();
    if (all.length && !all.some((button) => button.tabIndex === 0)) stop_at(all[0]);
  };
  stop_at(bar.querySelector("button"));
  return bar;
}
