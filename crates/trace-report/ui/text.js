// Numbers, times and names as text.

const HIDDEN =
  /[\p{Cc}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Text of a trace with escapes for what controls or hides; at most so many characters.
 * @param {string} text @param {number} [most] */
export function shown(text, most = 2000) {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(HIDDEN, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}

/** A number with groups of digits.
 * @param {number} value */
export function count(value) {
  return value.toLocaleString('en-US').replace(/,/g, '\u202f');
}

/** A number of things: 1 slice, 2 slices. @param {number} value @param {string} thing */
export function quantity(value, thing) {
  return `${count(value)} ${thing}${value === 1 ? '' : 's'}`;
}

/** A number with about four digits.
 * @param {number} value */
export function short(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return count(value);
  for (const [factor, unit] of /** @type {[number, string][]} */ ([
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
  ])) {
    if (size >= factor) return digits(value / factor) + unit;
  }
  return digits(value);
}

/** @param {number} value */
function digits(value) {
  const size = Math.abs(value);
  return String(Number(value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3)));
}

/** A length of time in nanoseconds with a unit that suits it.
 * @param {number} ns */
export function time(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${digits(ns)} ns`;
  if (size < 1e6) return `${digits(ns / 1e3)} µs`;
  if (size < 1e9) return `${digits(ns / 1e6)} ms`;
  if (size < 6e10) return `${digits(ns / 1e9)} s`;
  const minutes = Math.floor(ns / 6e10);
  if (minutes < 60) return `${minutes} min ${digits((ns % 6e10) / 1e9)} s`;
  return minutes < 2880 ? `${digits(ns / 3.6e12)} h` : `${digits(ns / 8.64e13)} d`;
}

/** A moment of the ruler: `step` decides how many digits matter.
 * @param {number} ns @param {number} step */
export function moment(ns, step) {
  const [factor, unit] =
    ns === 0
      ? [1, 's']
      : Math.abs(ns) < 1e3
        ? [1, 'ns']
        : Math.abs(ns) < 1e6
          ? [1e3, 'µs']
          : Math.abs(ns) < 1e9
            ? [1e6, 'ms']
            : [1e9, 's'];
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / factor) - 1e-9)));
  return `${(ns / factor).toFixed(ns === 0 ? 0 : places)} ${unit}`;
}

/** Bytes.
 * @param {number} value */
export function bytes(value) {
  return value < 1e3
    ? `${value} B`
    : value < 1e6
      ? `${digits(value / 1e3)} kB`
      : value < 1e9
        ? `${digits(value / 1e6)} MB`
        : `${digits(value / 1e9)} GB`;
}
