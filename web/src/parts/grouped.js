// A count with its thousands apart, "1,234". One formatter for all: to make one costs more than to draw a lane.

const FORMAT = new Intl.NumberFormat("en");

export function grouped(n) {
  return FORMAT.format(n);
}
