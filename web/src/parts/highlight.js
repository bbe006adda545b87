// What was searched for, made to stand out in a line of a picture.
//
// Not here: how it looks (css of the views).

/** The line as children of a text: strings, and tspans of the class "match". */
export function highlighted(line, query) {
  if (!query) return line ? [line] : [];
  const [low, wanted] = [line.toLowerCase(), query.toLowerCase()];
  if (low.length !== line.length) return [line]; // a letter that changes its length with its case
  const spans = [];
  let at = 0;
  for (let i = low.indexOf(wanted); i >= 0; i = low.indexOf(wanted, at)) {
    if (i > at) spans.push(line.slice(at, i));
    spans.push(["tspan", { class: "match" }, line.slice(i, i + wanted.length)]);
    at = i + wanted.length;
  }
  if (at < line.length) spans.push(line.slice(at));
  return spans;
}
