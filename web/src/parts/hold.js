// Keeps an element from getting lower while the reader looks at the past, so that what is below it stays under the pointer:
// at the beginning of a log there is little to show.
//
// Not here: which elements (shell.js, the tree).

/** From now on, while the store is in the past, `element` is no lower than it has been; returns the end of that. */
export function hold(element, store) {
  const { ResizeObserver, requestAnimationFrame } = element.ownerDocument.defaultView;
  let [wide, high] = [0, 0];
  const keep = () => {
    const least = store.seeking ? `${high}px` : "";
    if (element.style.minHeight !== least) element.style.minHeight = least;
  };
  const measure_anew = () => {
    element.style.minHeight = "";
    high = element.getBoundingClientRect().height;
    keep();
  };
  const sizes = new ResizeObserver((entries) => {
    const { inlineSize: width, blockSize: height } = entries.at(-1).borderBoxSize[0];
    if (!width) return; // it is folded, or on no page
    const is_other = wide > 0 && width !== wide;
    wide = width;
    if (is_other) return requestAnimationFrame(measure_anew); // not here, where it would be told of once more
    high = store.seeking ? Math.max(high, height) : height;
    keep();
  });
  sizes.observe(element);
  const off = store.on(keep);
  return () => {
    off();
    sizes.disconnect();
  };
}
