// What is on one row of a track, so that any zoom draws few rectangles. Level 0 is the slices in the order of
// their times; a node of level k stands for 4^k of them, by the longest.

/** @typedef {{index: Uint32Array, longest: Uint32Array[], sums: Float64Array[]}} Row */

const FAN = 4;

/** @param {Uint32Array} index @param {Float64Array} ts @param {Float64Array} end @param {number} last
 * @returns {Row} */
export function pyramid(index, ts, end, last) {
  const length = (/** @type {number} */ place) => Math.min(end[index[place]], last) - ts[index[place]];
  const longest = [];
  const sums = [];
  for (let below = index.length; below > FAN; ) {
    const size = Math.ceil(below / FAN);
    const best = new Uint32Array(size);
    const sum = new Float64Array(size);
    const level = longest.length;
    for (let node = 0; node < size; node++) {
      let most = -1;
      for (let child = node * FAN; child < Math.min((node + 1) * FAN, below); child++) {
        const place = level === 0 ? child : longest[level - 1][child];
        const size = length(place);
        sum[node] += level === 0 ? size : sums[level - 1][child];
        if (size > most) [most, best[node]] = [size, place];
      }
    }
    longest.push(best);
    sums.push(sum);
    below = size;
  }
  return {index, longest, sums};
}

/** Rows of slices, by their depths.
 * @param {Uint16Array | null} depth @param {Float64Array} ts @param {Float64Array} end @param {number} last */
export function rowsOf(depth, ts, end, last) {
  const sizes = [0];
  for (let i = 0; i < ts.length; i++) {
    const row = depth?.[i] ?? 0;
    while (sizes.length <= row) sizes.push(0);
    sizes[row]++;
  }
  const rows = sizes.map((size) => new Uint32Array(size));
  sizes.fill(0);
  for (let i = 0; i < ts.length; i++) {
    const row = depth?.[i] ?? 0;
    rows[row][sizes[row]++] = i;
  }
  return rows.map((index) => pyramid(index, ts, end, last));
}

/** The first place in a row whose slice begins after a time. @param {Uint32Array} index
 * @param {Float64Array} ts @param {number} at */
export function after(index, ts, at) {
  let [low, high] = [0, index.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ts[index[middle]] <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Passes on what is to be drawn of a row between two times, where nothing is shorter than `grain` nanoseconds:
 * begin, end, number of the slice, and the number of slices that it stands for.
 * @param {Row} row @param {Float64Array} ts @param {Float64Array} end @param {number} from @param {number} to
 * @param {number} grain @param {(from: number, to: number, slice: number, count: number) => void} take */
export function visible(row, ts, end, from, to, grain, take) {
  const {index, longest} = row;
  const size = index.length;
  let [begin, stop, slice, count, length] = [0, -1, 0, 0, -1];
  const flush = () => {
    if (count > 0) take(begin, stop, slice, count);
    count = 0;
  };
  /** @param {number} a @param {number} b @param {number} place @param {number} n */
  const emit = (a, b, place, n) => {
    const own = b - a;
    if (count > 0 && a < begin + grain && Math.max(b, stop) - begin <= 2 * grain) {
      stop = Math.max(stop, b);
      count += n;
      if (own > length) [slice, length] = [index[place], own];
      return;
    }
    flush();
    [begin, stop, slice, count, length] = [a, b, index[place], n, own];
  };
  /** @param {number} level @param {number} node */
  const walk = (level, node) => {
    const width = FAN ** level;
    const first = node * width;
    const last = Math.min(first + width, size) - 1;
    const a = ts[index[first]];
    const b = end[index[last]];
    if (b < from || a > to) return;
    if (level === 0 || b - a <= grain) {
      emit(a, b, level === 0 ? first : longest[level - 1][node], last - first + 1);
      return;
    }
    const children = Math.ceil(size / FAN ** (level - 1));
    for (let child = node * FAN; child < Math.min((node + 1) * FAN, children); child++) walk(level - 1, child);
  };
  const top = longest.length;
  const nodes = Math.ceil(size / FAN ** top);
  for (let node = 0; node < nodes; node++) walk(top, node);
  flush();
}
