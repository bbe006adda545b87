// The largest value that fits, found by halving.

/** Of the values from 0 to `most`, the largest for which `fits(value)` is true, less than `step` below it; 0 where none is. */
export function largest(fits, most, step) {
  if (fits(most)) return most;
  let [low, high] = [0, most];
  while (high - low > step) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}
