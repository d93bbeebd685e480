// What is on one row of a track, so that any zoom draws few rectangles. Level 0 is the slices in the order of
// their times; a node of level k stands for 4^k of them, by the longest.

/** Slices of a row, and for each level the begins and ends of its nodes, and from level 1 on the longest of each.
 * @typedef {{index: Uint32Array, longest: Uint32Array[], begins: Float64Array[], ends: Float64Array[]}} Row */

const FAN = 4;

/** @param {Uint32Array} index @param {Float64Array} ts @param {Float64Array} end @param {number} last
 * @returns {Row} */
export function pyramid(index, ts, end, last) {
  const longest = [];
  const begins = [Float64Array.from(index, (slice) => ts[slice])];
  const ends = [Float64Array.from(index, (slice) => end[slice])];
  /** Lengths of the longest ones of the level below. */
  let lengths = ends[0].map((end, i) => Math.min(end, last) - begins[0][i]);
  for (let below = index.length; below > FAN; ) {
    const size = Math.ceil(below / FAN);
    const best = new Uint32Array(size);
    const [begin, stop, most] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
    const level = longest.length;
    const under = longest[level - 1];
    for (let node = 0; node < size; node++) {
      const until = Math.min((node + 1) * FAN, below);
      let found = node * FAN;
      for (let child = found + 1; child < until; child++) if (lengths[child] > lengths[found]) found = child;
      best[node] = under ? under[found] : found;
      most[node] = lengths[found];
      begin[node] = begins[level][node * FAN];
      stop[node] = ends[level][until - 1];
    }
    longest.push(best);
    begins.push(begin);
    ends.push(stop);
    lengths = most;
    below = size;
  }
  return {index, longest, begins, ends};
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
 * begin, end, number of the slice, and the number of slices that it stands for. At most two for each grain.
 * @param {Row} row @param {number} from @param {number} to @param {number} grain
 * @param {(from: number, to: number, slice: number, count: number) => void} take */
export function visible({index, longest, begins, ends}, from, to, grain, take) {
  const size = index.length;
  // The first one that has not ended before.
  let [i, high] = [0, size];
  while (i < high) {
    const middle = (i + high) >> 1;
    if (ends[0][middle] < from) i = middle + 1;
    else high = middle;
  }
  let [begin, stop, slice, count, length] = [0, 0, 0, 0, 0];
  for (let level = 0; i < size; ) {
    // The largest node that begins here and is short enough is looked for from the level of the one before.
    while (level > 0 && (i & ((1 << (2 * level)) - 1)) !== 0) level--;
    let node = i >> (2 * level);
    const a = begins[level][node];
    if (a > to) break;
    let b = ends[level][node];
    while (level > 0 && b - a > grain) b = ends[--level][(node = i >> (2 * level))];
    while (level < longest.length && (node & (FAN - 1)) === 0 && ends[level + 1][node >> 2] - a <= grain)
      b = ends[++level][(node >>= 2)];
    const next = Math.min((node + 1) << (2 * level), size);
    const best = index[level === 0 ? i : longest[level - 1][node]];
    const own = b - a;
    if (count > 0 && a < begin + grain && own <= grain) {
      if (b > stop) stop = b;
      count += next - i;
      if (own > length) [slice, length] = [best, own];
    } else {
      if (count > 0) take(begin, stop, slice, count);
      [begin, stop, slice, count, length] = [a, b, best, next - i, own];
    }
    i = next;
  }
  if (count > 0) take(begin, stop, slice, count);
}
