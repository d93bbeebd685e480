// Blocks of columns, as crates/trace-report/src/blocks.rs writes them. The worker runs this.

/** @typedef {{text: string, columns: (Float64Array | Uint32Array)[]}} Template */
/** @typedef {{
 *   track: number, n: number, ts: Float64Array, end?: Float64Array, depth?: Uint16Array, what?: Uint32Array,
 *   template?: Uint32Array, values?: Float64Array, counts?: Float64Array, sums?: Float64Array, texts?: string[], templates?: Template[],
 * }} Segment */

export const KIND = {thread: 0, operations: 1, cpu: 2, instants: 3, logs: 4, counter: 5, folded: 6, states: 7};

/** Whether what is on a track has a length. @param {number} kind */
export const hasLength = (kind) => kind <= KIND.cpu || kind >= KIND.folded;

/** Decompresses text of an element.
 * @param {string} text @returns {Promise<Uint8Array>} */
export async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads numbers and texts. */
export class Bytes {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    let byte = this.bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let factor = 128;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte >= 128);
    return value;
  }

  signed() {
    const value = this.number();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  text() {
    const length = this.number();
    this.at += length;
    return new TextDecoder().decode(this.bytes.subarray(this.at - length, this.at));
  }

  get isAtEnd() {
    return this.at >= this.bytes.length;
  }
}

/** @param {Bytes} input @param {Uint32Array} used the templates of events, from 1 */
function argumentsOf(input, used) {
  const texts = Array.from({length: input.number()}, () => input.text());
  const count = input.number();
  const uses = new Uint32Array(count + 1);
  for (const number of used) uses[number]++;
  const templates = [];
  for (let place = 1; place <= count; place++) {
    const text = input.text();
    const columns = [];
    for (const mark of text) {
      if (mark === '\u0001') columns.push(numbers(input, uses[place]));
      else if (mark === '\u0002' || mark === '\u0003')
        columns.push(Uint32Array.from({length: uses[place]}, () => input.number()));
    }
    templates.push({text, columns});
  }
  return {texts, templates};
}

/** @param {Bytes} input @param {number} n */
function numbers(input, n) {
  const isDelta = input.number() === 1;
  const values = new Float64Array(n);
  let before = 0;
  for (let i = 0; i < n; i++) {
    const value = input.signed();
    values[i] = before += value;
    if (!isDelta) before = 0;
  }
  return values;
}

/** @param {Bytes} input @param {number} n */
function valuesOf(input, n) {
  const values = new Float64Array(n);
  if (input.number() === 1) {
    const view = new DataView(input.bytes.buffer, input.bytes.byteOffset + input.at);
    for (let i = 0; i < n; i++) values[i] = view.getFloat64(8 * i, true);
    input.at += 8 * n;
    return values;
  }
  let value = 0;
  for (let i = 0; i < n; i++) values[i] = value += input.signed();
  return values;
}

/** All segments of a block, with times in nanoseconds.
 * @param {Uint8Array} bytes @param {Uint8Array} kinds @param {number} unit @returns {Segment[]} */
export function segments(bytes, kinds, unit) {
  const input = new Bytes(bytes);
  const found = [];
  while (!input.isAtEnd) {
    const track = input.number();
    const n = input.number();
    const kind = kinds[track];
    const ts = new Float64Array(n);
    let at = 0;
    for (let i = 0; i < n; i++) ts[i] = (at += input.number()) * unit;
    /** @type {Segment} */
    const segment = {track, n, ts};
    if (kind === KIND.counter) {
      segment.values = valuesOf(input, n);
      found.push(segment);
      continue;
    }
    if (hasLength(kind)) {
      const end = (segment.end = new Float64Array(n));
      for (let i = 0; i < n; i++) {
        const length = input.number();
        end[i] = length === 0 ? Infinity : ts[i] + (length - 1) * unit;
      }
      const depth = (segment.depth = new Uint16Array(n));
      for (let i = 0; i < n; i++) depth[i] = input.number();
    }
    const what = (segment.what = new Uint32Array(n));
    for (let i = 0; i < n; i++) what[i] = input.number();
    if (kind === KIND.folded) {
      const counts = (segment.counts = new Float64Array(n));
      const sums = (segment.sums = new Float64Array(n));
      for (let i = 0; i < n; i++) [counts[i], sums[i]] = [input.number(), input.number() * unit];
      found.push(segment);
      continue;
    }
    const template = (segment.template = new Uint32Array(n));
    for (let i = 0; i < n; i++) template[i] = input.number();
    Object.assign(segment, argumentsOf(input, template));
    found.push(segment);
  }
  return found;
}
