// Columns that grow at their end.

/** Numbers that a column has room for, at least: there may be ten thousand tracks. */
const LEAST = 8;

/** A column of numbers with room for more.
 * @template {Float64Array | Uint32Array | Uint16Array} T */
export class Column {
  /** @param {new (n: number) => T} type */
  constructor(type) {
    this.type = type;
    this.room = new type(LEAST);
    this.n = 0;
  }

  clear() {
    this.room = new this.type(LEAST);
    this.n = 0;
  }

  /** @param {number} value */
  push(value) {
    if (this.n === this.room.length) {
      const old = this.room;
      this.room = new this.type(2 * this.n);
      this.room.set(/** @type {any} */ (old));
    }
    this.room[this.n++] = value;
  }

  /** What it has, without a copy. @returns {T} */
  get view() {
    return /** @type {T} */ (this.room.subarray(0, this.n));
  }
}

/** Slices below each node of the pyramid, as in pyramid.js. */
const BELOW = 4;

/** A row of slices and its pyramid, whose end changes. */
export class GrowingRow {
  constructor() {
    this.index = new Column(Uint32Array);
    this.begins = [new Column(Float64Array)];
    this.ends = [new Column(Float64Array)];
    /** @type {Column<Uint32Array>[]} */
    this.longest = [];
    this.lengths = [new Column(Float64Array)];
    /** From here on the levels above are not up to date. */
    this.dirty = 0;
  }

  /** Forgets the slices from a number on. @param {number} slice */
  cut(slice) {
    const {room, n} = this.index;
    let [low, high] = [0, n];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (room[middle] < slice) low = middle + 1;
      else high = middle;
    }
    for (const column of [this.index, this.begins[0], this.ends[0], this.lengths[0]]) column.n = low;
    this.dirty = Math.min(this.dirty, low);
  }

  /** @param {number} slice @param {number} begin @param {number} end @param {number} last what has not ended counts up to here */
  push(slice, begin, end, last) {
    this.index.push(slice);
    this.begins[0].push(begin);
    this.ends[0].push(end);
    this.lengths[0].push(Math.min(end, last) - begin);
  }

  /** Makes the levels above. */
  finish() {
    let level = 0;
    for (let below = this.index.n; below > BELOW; level++) {
      const size = Math.ceil(below / BELOW);
      const best = (this.longest[level] ??= new Column(Uint32Array));
      const begins = (this.begins[level + 1] ??= new Column(Float64Array));
      const ends = (this.ends[level + 1] ??= new Column(Float64Array));
      const lengths = (this.lengths[level + 1] ??= new Column(Float64Array));
      const first = Math.min(Math.floor(this.dirty / BELOW ** (level + 1)), best.n);
      for (const column of [best, begins, ends, lengths]) column.n = first;
      const under = this.longest[level - 1]?.room;
      const [fromBelow, toBelow, lengthBelow] = [
        this.begins[level].room,
        this.ends[level].room,
        this.lengths[level].room,
      ];
      for (let node = first; node < size; node++) {
        const until = Math.min((node + 1) * BELOW, below);
        let found = node * BELOW;
        for (let child = found + 1; child < until; child++) if (lengthBelow[child] > lengthBelow[found]) found = child;
        best.push(under ? under[found] : found);
        begins.push(fromBelow[node * BELOW]);
        ends.push(toBelow[until - 1]);
        lengths.push(lengthBelow[found]);
      }
      below = size;
    }
    this.longest.length = level;
    this.begins.length = this.ends.length = this.lengths.length = level + 1;
    this.dirty = this.index.n;
  }

  /** The row as it is drawn. @returns {import('../pyramid.js').Row} */
  get row() {
    const views = (/** @type {Column<any>[]} */ columns) => columns.map(({view}) => view);
    return {
      index: this.index.view,
      longest: views(this.longest),
      begins: views(this.begins),
      ends: views(this.ends),
    };
  }
}
