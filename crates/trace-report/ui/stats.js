// Sums over a range of time, and the question in SQL that gives the same.
import {KIND} from './decode.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Track} Track */
/** @typedef {{category: string, name: string, kind: string, count: number, sum: number, longest: number,
 * at: [Track, number]}} Sum */

/** A part of the time around something, that shows what is beside it. @param {number} at @param {number} length
 * @returns {[number, number]} */
export function around(at, length) {
  const margin = Math.max(length * 0.6, 500);
  return [at - margin, at + length + margin];
}

/** Sums of slices by name: how many lie in a range at least partly, and how much of their time is in it. Operations are
 * apart from what threads did, which may be their polls.
 * @param {Model} model @param {Track[]} tracks @param {number} from @param {number} to @returns {Sum[]} */
export function sumsOf(model, tracks, from, to) {
  /** @type {Map<number, Sum>} */
  const sums = new Map();
  const short = foldedIn(tracks, from, to);
  for (const track of tracks) {
    const {data} = track;
    if (!data) continue;
    const {ts, end, what, n} = data;
    const isOperation = track.kind === KIND.operations;
    for (let i = 0; i < n && ts[i] < to; i++) {
      if (!(end[i] > from)) continue;
      const inside = Math.min(end[i], to, model.length) - Math.max(ts[i], from);
      const key = what[i] * 2 + (isOperation ? 1 : 0);
      let sum = sums.get(key);
      if (!sum) {
        sum = {
          category: model.categoryOf(what[i]),
          name: model.nameOf(what[i]),
          kind: isOperation ? 'operation' : 'thread',
          count: 0,
          sum: 0,
          longest: -1,
          at: [track, i],
        };
        sums.set(key, sum);
      }
      sum.count++;
      sum.sum += inside;
      if (inside > sum.longest) [sum.longest, sum.at] = [inside, [track, i]];
    }
  }
  if (short) sums.set(-1, short);
  return [...sums.values()].sort((a, b) => b.sum - a.sum || b.count - a.count);
}

/** What is drawn together in a range, all of it that begins there. @param {Track[]} tracks @param {number} from
 * @param {number} to @returns {Sum | null} */
function foldedIn(tracks, from, to) {
  /** @type {Sum | null} */
  let sum = null;
  for (const track of tracks) {
    const data = track.folded?.data;
    if (!data?.counts || !data.sums || !track.folded) continue;
    for (let i = 0; i < data.n && data.ts[i] < to; i++) {
      if (data.ts[i] < from) continue;
      sum ??= {
        category: '',
        name: 'short slices that are drawn together',
        kind: '',
        count: 0,
        sum: 0,
        longest: 0,
        at: [track.folded, i],
      };
      sum.count += data.counts[i];
      sum.sum += data.sums[i];
    }
  }
  return sum;
}

/** Values of counters in a range. @param {Model} model @param {Track[]} tracks @param {number} from
 * @param {number} to */
export function countersIn(model, tracks, from, to) {
  return tracks.flatMap((track) => {
    const {data} = track;
    if (!data?.values) return [];
    let [count, min, max, sum] = [0, Infinity, -Infinity, 0];
    for (let i = 0; i < data.n && data.ts[i] <= to; i++) {
      if (data.ts[i] < from) continue;
      const value = data.values[i];
      count++;
      sum += value;
      [min, max] = [Math.min(min, value), Math.max(max, value)];
    }
    return count === 0
      ? []
      : [{title: model.titleOf(track), process: model.processLabel(track.process), count, min, max, mean: sum / count}];
  });
}

/** Time of a slice without the slices directly in it. @param {Model} model @param {Track} track @param {number} i */
export function selfTime(model, track, i) {
  const {data} = track;
  if (!data?.depth) return 0;
  const {ts, end, depth, rows} = data;
  const until = Math.min(end[i], model.length);
  let self = until - ts[i];
  if (track.kind !== KIND.thread) return self;
  const below = rows[depth[i] + 1] ?? {index: []};
  let [low, high] = [0, below.index.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ts[below.index[middle]] < ts[i]) low = middle + 1;
    else high = middle;
  }
  for (; low < below.index.length; low++) {
    const child = below.index[low];
    if (ts[child] >= until) break;
    self -= Math.min(end[child], until) - ts[child];
  }
  const folds = track.folded?.data;
  for (let k = 0; folds?.sums && folds.depth && k < folds.n && folds.ts[k] < until; k++) {
    if (folds.ts[k] >= ts[i] && folds.depth[k] === depth[i] + 1) self -= folds.sums[k];
  }
  return Math.max(self, 0);
}

const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", "''")}'`;
/** SQLite's numbers have a sign. @param {string} id */
const signed = (id) => BigInt.asIntN(64, BigInt(id)).toString();

/** Sums of a range, for trace query. @param {Model} model @param {number} from @param {number} to */
export function sqlOfRange(model, from, to) {
  const [a, b] = [model.absolute(from), model.absolute(to)];
  const end = `coalesce(ts + dur, ${model.absolute(model.length)})`;
  return (
    `SELECT category, name, iif(kind = 'operation', kind, 'thread') AS kind, count(*) AS n, sum(min(${end}, ${b}) - max(ts, ${a})) AS ns FROM slices ` +
    `WHERE ts < ${b} AND (dur IS NULL OR ts + dur > ${a}) GROUP BY 1, 2, 3 ORDER BY ns DESC`
  );
}

/** The row of something, for trace query. @param {Model} model @param {Track} track @param {number} i */
export function sqlOf(model, track, i) {
  const ts = model.absolute(track.data?.ts[i] ?? 0);
  const name = `name = ${quoted(model.nameOf(track.data?.what[i] ?? 0))}`;
  if (track.kind === KIND.cpu) return `SELECT * FROM sched WHERE cpu = ${track.owner} AND ts = ${ts}`;
  if (track.kind === KIND.folded)
    return 'SELECT name, count(*) AS n, sum(dur) AS ns FROM slices GROUP BY name ORDER BY ns DESC';
  if (track.kind === KIND.logs) return `SELECT * FROM logs WHERE ts = ${ts}`;
  const process = `pid = ${signed(model.processes[track.process].pid)}`;
  if (track.kind === KIND.counter)
    return `SELECT * FROM counters WHERE ${process} AND name = ${quoted(model.nameOf(track.what))} ORDER BY ts`;
  if (track.kind === KIND.operations)
    return `SELECT * FROM slices WHERE ${process} AND ${name} AND ts = ${ts} AND async_id IS NOT NULL`;
  const tid = `tid = ${signed(model.threads[track.owner].tid)}`;
  if (track.kind === KIND.states) return `SELECT * FROM sched WHERE ${tid} ORDER BY ts`;
  const table = track.kind === KIND.instants ? 'instants' : 'slices';
  return `SELECT * FROM ${table} WHERE ${process} AND ${tid} AND ${name} AND ts = ${ts}`;
}
