// Pictures as plain values: [tag, attributes, ...children], where a child is another picture or a text. The same value
// becomes elements of a page (`Sheet`) and a file (`to_text`). Texts are only ever text.
// Not here: what is in a picture (shapes.js).

const SVG = "http://www.w3.org/2000/svg";
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** The picture as SVG source. */
export function to_text(picture) {
  if (typeof picture === "string") return escape(picture);
  const [tag, attributes, ...children] = picture;
  const pairs = Object.entries(attributes).filter(([, value]) => value !== undefined && value !== "");
  const head = tag + pairs.map(([name, value]) => ` ${name}="${escape(String(value))}"`).join("");
  return children.length ? `<${head}>${children.map(to_text).join("")}</${tag}>` : `<${head}/>`;
}

/** The picture as an element. */
export function to_element(doc, picture) {
  if (typeof picture === "string") return doc.createTextNode(picture);
  const [tag, attributes, ...children] = picture;
  const element = doc.createElementNS(SVG, tag);
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined && value !== "") element.setAttribute(name, value);
  }
  for (const child of children) element.append(to_element(doc, child));
  return element;
}

/** A group of pictures by key. Only what has changed touches the page: attributes alone, where what is inside is the same. */
export class Sheet {
  constructor(group) {
    this.group = group;
    this.old = new Map(); // key -> {picture, element}
  }

  /** Show these pictures, [key, picture] each, in this order; those of a new key have the class "fresh". */
  show(pictures, is_new = () => false) {
    const next = new Map();
    const keys = new Set(pictures.map(([key]) => key));
    for (const [key, { element }] of this.old) if (!keys.has(key)) element.remove(); // first, or all behind it would move
    let at = this.group.firstChild;
    for (const [key, picture] of pictures) {
      const before = this.old.get(key);
      let element = before?.element ?? null;
      if (element !== null && is_same(before.picture, picture, 2)) {
        change(element, before.picture[1], picture[1]);
      } else {
        const made = to_element(this.group.ownerDocument, picture);
        if (element !== null) {
          if (at === element) at = made;
          element.replaceWith(made);
        } else if (is_new(key)) made.classList.add("fresh");
        element = made;
      }
      next.set(key, { picture, element });
      if (element === at) at = at.nextSibling;
      else this.group.insertBefore(element, at);
    }
    this.old = next;
  }

  /** The element of a key, or null. */
  element(key) {
    return this.old.get(key)?.element ?? null;
  }
}

/** Whether two pictures, or attributes, have the same values from the place `from` on. */
function is_same(a, b, from = 0) {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.slice(from).every((name) => is_same(a[name], b[name]));
}

function change(element, before, after) {
  for (const [name, value] of Object.entries(after)) {
    if (before[name] === value) continue;
    if (value === undefined || value === "") element.removeAttribute(name);
    else element.setAttribute(name, String(value));
  }
}

// XML knows no control characters at all, not even escaped.
function escape(text) {
  return text.replace(/[&<>"']/g, (char) => ESCAPES[char]).replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "�");
}
