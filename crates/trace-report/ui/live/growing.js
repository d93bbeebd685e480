// What is on a track of a recording that is still running: entries in the order of their begins, to which
// new ones come, mostly at the end. What begins before the last ones is merged, and what follows it is
// placed anew.
import {KIND, hasLength} from '../decode.js';
import {Column, GrowingRow} from './columns.js';

/** @typedef {{ts: number, end: number, what: number, value: number, count: number, sum: number}} Entry */

/** Rows of a track, at most: each is memory, and more are no picture. */
const MOST_LANES = 512;

export class Growing {
  /** @param {number} kind */
  constructor(kind) {
    this.kind = kind;
    this.isLong = hasLength(kind);
    this.ts = new Column(Float64Array);
    this.end = new Column(Float64Array);
    this.what = new Column(Uint32Array);
    this.depth = new Column(Uint16Array);
    this.values = new Column(Float64Array);
    this.counts = new Column(Float64Array);
    this.sums = new Column(Float64Array);
    /** @type {GrowingRow[]} */
    this.rows = [];
    /** How many have not ended. */
    this.open = 0;
  }

  /** Forgets everything, and gives its memory back. */
  clear() {
    const {ts, end, what, depth, values, counts, sums} = this;
    for (const column of [ts, end, what, depth, values, counts, sums]) column.clear();
    this.rows = [];
    this.open = 0;
  }

  get n() {
    return this.ts.n;
  }

  /** The first entry that does not begin before a moment. @param {number} at */
  from(at) {
    const {room, n} = this.ts;
    let [low, high] = [0, n];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (room[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The place of something; −1 if it is not there. @param {number} ts @param {number} what @param {number} [end] */
  find(ts, what, end) {
    for (let i = this.from(ts); i < this.n && this.ts.room[i] === ts; i++)
      if (this.what.room[i] === what && (end === undefined || this.end.room[i] === end)) return i;
    return -1;
  }

  /** @param {number} i @returns {Entry} */
  entry(i) {
    const of = (/** @type {Column<any>} */ column) => (i < column.n ? column.room[i] : 0);
    return {
      ts: this.ts.room[i],
      end: this.isLong ? of(this.end) : this.ts.room[i],
      what: of(this.what),
      value: of(this.values),
      count: of(this.counts),
      sum: of(this.sums),
    };
  }

  /** Takes entries, in the order of their begins; those that begin together, the outermost first. The first place that
   * has changed. @param {Entry[]} entries @param {number} last @param {(at: number) => number} [depthAt] of folds */
  add(entries, last, depthAt) {
    let changed = this.n;
    const fresh = [];
    for (const entry of entries) {
      const known = this.open > 0 ? this.find(entry.ts, entry.what, Infinity) : -1;
      if (known < 0) {
        fresh.push(entry);
      } else if (entry.end !== Infinity) {
        this.end.room[known] = entry.end;
        this.open--;
        changed = Math.min(changed, known);
      }
    }
    if (fresh.length > 0) changed = Math.min(changed, this.from(fresh[0].ts));
    if (fresh.length === 0 && changed === this.n) return changed;
    const tail = this.cut(changed);
    const place = this.placing(last, depthAt);
    let [a, b] = [0, 0];
    while (a < tail.length || b < fresh.length) {
      const [old, young] = [tail[a], fresh[b]];
      const isOld = old && (!young || old.ts < young.ts || (old.ts === young.ts && old.end >= young.end));
      place(isOld ? tail[a++] : fresh[b++]);
    }
    for (const row of this.rows) row.finish();
    return changed;
  }

  /** Takes out the entries from a place on. @param {number} from */
  cut(from) {
    const entries = [];
    for (let i = from; i < this.n; i++) entries.push(this.entry(i));
    for (let i = from; i < this.n && this.isLong; i++) if (this.end.room[i] === Infinity) this.open--;
    const {ts, end, what, depth, values, counts, sums} = this;
    for (const column of [ts, end, what, depth, values, counts, sums]) column.n = Math.min(column.n, from);
    for (const row of this.rows) row.cut(from);
    return entries;
  }

  /** Adds entries at the end, in their rows. @param {number} last @param {(at: number) => number} [depthAt] */
  placing(last, depthAt) {
    const isOfRows = this.kind === KIND.thread || this.kind === KIND.operations;
    /** When the last one in each row ends. */
    const ends = isOfRows ? this.rows.map(({index: {room, n}}) => (n > 0 ? this.end.room[room[n - 1]] : 0)) : [];
    return (/** @type {Entry} */ {ts, end, what, value, count, sum}) => {
      let depth = 0;
      if (isOfRows) {
        depth = this.rowOf(ends, ts, end);
        ends[depth] = end;
      } else if (depthAt) {
        depth = depthAt(ts);
      }
      const i = this.n;
      this.ts.push(ts);
      if (this.kind === KIND.counter) {
        this.values.push(value);
        return;
      }
      this.what.push(what);
      if (this.isLong) {
        this.end.push(end);
        this.depth.push(depth);
        if (end === Infinity) this.open++;
      }
      if (this.kind === KIND.folded) {
        this.counts.push(count);
        this.sums.push(sum);
      }
      while (this.rows.length <= depth) this.rows.push(new GrowingRow());
      this.rows[depth].push(i, ts, end, last);
    };
  }

  /** The first row in which nothing else is, below what a slice is in. Operations are in no other one.
   * @param {number[]} ends by row @param {number} ts @param {number} end */
  rowOf(ends, ts, end) {
    let [first, least] = [0, Infinity];
    ends.forEach((around, row) => {
      if (this.kind === KIND.thread && around > ts && around >= end && around <= least)
        [first, least] = [row + 1, around];
    });
    while (first < Math.min(ends.length, MOST_LANES - 1) && ends[first] > ts) first++;
    return Math.min(first, MOST_LANES - 1);
  }

  /** How many slices are around a moment. @param {number} at */
  depthAt(at) {
    for (let depth = this.rows.length - 1; depth >= 0; depth--) {
      const {index} = this.rows[depth];
      let [low, high] = [0, index.n];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.ts.room[index.room[middle]] <= at) low = middle + 1;
        else high = middle;
      }
      if (low > 0 && this.end.room[index.room[low - 1]] > at) return depth + 1;
    }
    return 0;
  }

  /** Places everything from a moment on anew. @param {number} at @param {number} last
   * @param {(at: number) => number} depthAt */
  replace(at, last, depthAt) {
    this.cut(this.from(at)).forEach(this.placing(last, depthAt));
    for (const row of this.rows) row.finish();
  }

  /** Takes out what is known to be open and is no longer said to be: its end is not known. @param {number} ts
   * @param {number} what @param {number} last */
  lose(ts, what, last) {
    const lost = this.open > 0 ? this.find(ts, what, Infinity) : -1;
    if (lost < 0) return;
    this.cut(lost).slice(1).forEach(this.placing(last));
    for (const row of this.rows) row.finish();
  }

  /** Lets what is still open end, unless it is known to be open. @param {Set<string>} known
   * @param {number} at @param {number} last */
  endAllBut(known, at, last) {
    if (this.open === 0) return;
    const entries = [];
    for (let i = 0; i < this.n; i++)
      if (this.end.room[i] === Infinity && !known.has(`${this.ts.room[i]} ${this.what.room[i]}`))
        entries.push({...this.entry(i), end: Math.max(at, this.ts.room[i])});
    this.add(entries, last);
  }

  /** Forgets what has ended before a moment, if that is much. Whether it has. @param {number} at
   * @param {number} last */
  forget(at, last) {
    const until = this.from(at);
    const kept = [];
    for (let i = 0; i < until && this.isLong; i++) if (this.end.room[i] >= at) kept.push(i);
    if (kept.length === until || until - kept.length < this.n / 4) return false;
    for (let i = until; i < this.n; i++) kept.push(i);
    const entries = kept.map((i) => this.entry(i));
    const depths = kept.map((i) => this.depth.room[i]);
    this.clear();
    let next = 0;
    const place = this.placing(last, this.kind === KIND.folded ? () => depths[next++] : undefined);
    entries.forEach(place);
    for (const row of this.rows) row.finish();
    return true;
  }

  /** What is drawn. @returns {import('../model.js').Data} */
  get data() {
    const {isLong, kind} = this;
    const isFolded = kind === KIND.folded;
    const ts = this.ts.view;
    return {
      n: this.n,
      ts,
      end: isLong ? this.end.view : ts,
      depth: isLong ? this.depth.view : null,
      what: kind === KIND.counter ? new Uint32Array(this.n) : this.what.view,
      values: kind === KIND.counter ? this.values.view : null,
      counts: isFolded ? this.counts.view : null,
      sums: isFolded ? this.sums.view : null,
      segments: [],
      starts: [],
      rows: kind === KIND.counter ? [] : this.rows.map(({row}) => row),
    };
  }
}
