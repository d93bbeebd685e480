// Tests the modules of the page of a running recording that need no browser: node --test live.mjs
import assert from 'node:assert/strict';
import test from 'node:test';
import {KIND} from '../../crates/trace-report/ui/decode.js';
import {groupsOf, Layout} from '../../crates/trace-report/ui/layout.js';
import {GrowingRow} from '../../crates/trace-report/ui/live/columns.js';
import {Growing} from '../../crates/trace-report/ui/live/growing.js';
import {LiveModel} from '../../crates/trace-report/ui/live/model.js';
import {rowsOf, pyramid} from '../../crates/trace-report/ui/pyramid.js';

/** Numbers that look random and are the same each time. @param {number} seed */
function random(seed) {
  let state = seed;
  return (/** @type {number} */ below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('a row that grows has the pyramid of one that was made at once', () => {
  const next = random(7);
  const [index, ts, end] = [[], [], []];
  const row = new GrowingRow();
  for (let round = 0; round < 200; round++) {
    if (next(3) === 0 && index.length > 0) {
      const from = next(index.length);
      row.cut(from);
      for (const column of [index, ts, end]) column.length = from;
    }
    for (let i = next(40); i > 0; i--) {
      const at = (ts.at(-1) ?? 0) + 10;
      row.push(ts.length, at, at + next(9), 1e9);
      index.push(ts.length);
      ts.push(at);
      end.push(row.ends[0].room[row.index.n - 1]);
    }
    row.finish();
    const whole = pyramid(Uint32Array.from(index), Float64Array.from(ts), Float64Array.from(end), 1e9);
    assert.deepEqual(row.row, whole, `round ${round}`);
  }
});

/** Slices of a thread that nest, in the order in which they end. @param {(below: number) => number} next */
function nested(next, count) {
  const all = [];
  const open = [];
  let at = 0;
  while (all.length < count || open.length > 0) {
    at += 1 + next(3);
    if (open.length < 5 && all.length + open.length < count && next(2) === 0) open.push({ts: at, what: next(4)});
    else if (open.length > 0) all.push({...open.pop(), end: at});
  }
  return all;
}

const order = (a, b) => a.ts - b.ts || b.end - a.end;
const full = (entry) => ({value: 0, count: 0, sum: 0, ...entry});

test('slices come in any pieces, and are where they are when all come at once', () => {
  for (let seed = 1; seed < 30; seed++) {
    const next = random(seed);
    const all = nested(next, 300);
    const growing = new Growing(KIND.thread);
    for (let from = 0; from < all.length; ) {
      const to = from + 1 + next(20);
      const ended = all.slice(from, to).map(full).sort(order);
      const last = Math.max(...ended.map(({end}) => end));
      // What has begun meanwhile and not ended is announced, some of it twice.
      const open = all.slice(to).filter(({ts}) => ts <= last && next(2) === 0).map((of) => full({...of, end: Infinity}));
      growing.add([...ended, ...open].sort(order), 1e6);
      from = to;
      const now = growing.data;
      const around = now.ts.map((at) => now.ts.reduce((sum, ts, i) => sum + Number(ts < at && now.end[i] > at), 0));
      assert.deepEqual([...now.depth], [...around], `${seed}: ${to}`);
    }
    assert.equal(growing.open, 0);
    const sorted = [...all].sort(order);
    const {ts, end, what, depth, rows, n} = growing.data;
    assert.deepEqual([n, ...ts], [all.length, ...sorted.map((of) => of.ts)]);
    assert.deepEqual([...end], sorted.map((of) => of.end));
    assert.deepEqual([...what], sorted.map((of) => of.what));
    const depths = sorted.map((of) => sorted.filter((other) => other.ts < of.ts && other.end > of.end).length);
    assert.deepEqual([...depth], depths);
    assert.deepEqual(rows, rowsOf(depth, ts, end, 1e6));
    for (const at of [0, 17, 100, 301]) {
      const around = sorted.filter((of) => of.ts <= at && of.end > at).length;
      assert.equal(growing.depthAt(at), around, `${seed} ${at}`);
    }
  }
});

test('what is old is forgotten, and what is around the rest stays', () => {
  const growing = new Growing(KIND.thread);
  const entries = [full({ts: 0, end: 1000, what: 1}), full({ts: 1, end: Infinity, what: 2})];
  for (let at = 10; at < 900; at += 10) entries.push(full({ts: at, end: at + 5, what: 3}));
  growing.add(entries, 1000);
  assert.equal(growing.forget(100, 1000), false, 'too little to be worth it');
  assert.equal(growing.forget(500, 1000), true);
  assert.deepEqual([...growing.data.ts].slice(0, 4), [0, 1, 500, 510]);
  assert.deepEqual([...growing.data.depth].slice(0, 4), [0, 1, 2, 2]);
  assert.equal(growing.open, 1);
  growing.endAllBut(new Set(['1 2']), 950, 1000);
  assert.equal(growing.open, 1);
  growing.endAllBut(new Set(), 950, 1000);
  assert.deepEqual([growing.open, growing.data.end[1]], [0, 950]);
});

test('operations that overlap are in different rows', () => {
  const growing = new Growing(KIND.operations);
  growing.add([full({ts: 10, end: 20, what: 1}), full({ts: 12, end: 14, what: 1})], 100);
  growing.add([full({ts: 5, end: 30, what: 1}), full({ts: 14, end: 15, what: 1})], 100);
  assert.deepEqual([...growing.data.ts], [5, 10, 12, 14]);
  assert.deepEqual([...growing.data.depth], [0, 1, 2, 2]);
  assert.deepEqual([...growing.data.rows[2].index], [2, 3]);
});

test('slices of a thread that overlap are in different rows, below what they are in', () => {
  const growing = new Growing(KIND.thread);
  growing.add([full({ts: 0, end: 100, what: 1}), full({ts: 10, end: 20, what: 2}), full({ts: 15, end: 40, what: 3})], 200);
  growing.add([full({ts: 16, end: 19, what: 4}), full({ts: 30, end: 35, what: 5}), full({ts: 50, end: 60, what: 6})], 200);
  assert.deepEqual([...growing.data.depth], [0, 1, 2, 3, 3, 1]);
  // Of two that are equal, the first one is around the other.
  growing.add([full({ts: 50, end: 60, what: 7})], 200);
  assert.deepEqual([[...growing.data.what].slice(-2), [...growing.data.depth].slice(-2)], [[6, 7], [1, 2]]);
});

const update = (of) => ({base: '1000', from: 0, now: 100, clock: 0, totals: {}, ...of});

test('what is deep or has gone costs no memory', () => {
  const growing = new Growing(KIND.thread);
  const deep = Array.from({length: 3000}, (_, i) => full({ts: i, end: 10000 - i, what: 1}));
  growing.add(deep, 1e6);
  assert.deepEqual([growing.n, growing.rows.length, growing.data.depth[511], growing.data.depth[2999]], [3000, 512, 511, 511]);
  assert.equal(growing.depthAt(2999.5), 512);
  // What follows is as deep as what is around it.
  growing.add([full({ts: 9998, end: 9998.5, what: 2}), full({ts: 20000, end: 20001, what: 2})], 1e6);
  assert.deepEqual([...growing.data.depth].slice(-2), [2, 0]);
  assert.equal(growing.forget(30000, 1e6), true);
  assert.deepEqual([growing.n, growing.rows.length], [0, 0]);
  assert.ok(growing.ts.room.length < 64, 'its memory is free again');
});

test('what is no longer open and has no end is taken out', () => {
  for (const kind of [KIND.thread, KIND.operations]) {
    const growing = new Growing(kind);
    growing.add([full({ts: 1, end: Infinity, what: 1}), full({ts: 2, end: Infinity, what: 2}), full({ts: 3, end: 4, what: 1})], 10);
    growing.lose(1, 2, 10);
    assert.deepEqual([growing.n, growing.open, [...growing.data.depth]], [3, 2, [0, 1, 2]]);
    growing.lose(1, 1, 10);
    assert.deepEqual([growing.n, growing.open, [...growing.data.ts], [...growing.data.depth]], [2, 1, [2, 3], [0, 1]]);
  }
  const model = new LiveModel();
  model.name({texts: ['', 'a'], whats: [[0, 1]], processes: ['7'], threads: [['8', 0]], tracks: [[0, 0, 0, '0', '']]});
  model.update(update({slices: [[0, [10, 10], [0, 0], [0, 0]]]}));
  model.update(update({from: 100, now: 200, gone: [[0, 10, 0]]}));
  assert.deepEqual([...model.tracks[0].data.ts], [20]);
});

test('messages become tracks with what is on them', () => {
  const model = new LiveModel();
  model.name({texts: ['', 'a', 'b'], whats: [[0, 1], [0, 2]], processes: ['7'], threads: [['8', 0]], tracks: [[0, 0, 0, '0', ''], [3, 0, 0, '0', ''], [5, 0, 1, '3', 's']]});
  model.name({thread_names: [[0, 'main']], process_names: [[0, 'app']]});
  model.update(update({slices: [[0, [10, 20], [0, 6], [1, 0]]], folds: [[0, [32, 8], [5, 3], [0, 1], [7, 2], [4, 2]]], points: [[1, [3], [1]]], samples: [[2, [4, 1], [1.5, null]]]}));
  const [slices, instants, values] = model.tracks;
  assert.deepEqual([model.base, model.begin, model.length], [1000n, 0, 100]);
  assert.deepEqual([...slices.data.ts, ...slices.data.end, ...slices.data.depth], [10, 30, Infinity, 35, 0, 1]);
  assert.deepEqual([model.titleOf(slices), model.whereOf(slices), model.titleOf(values)], ['main', 'app › main', 'b #3 · s']);
  assert.deepEqual([...instants.data.ts, ...instants.data.what], [3, 1]);
  assert.deepEqual([...values.data.ts, ...values.data.values], [4, 5, 1.5, NaN]);
  assert.deepEqual([values.min, values.max], [0, 1.5]);
  // What was folded lies below what is around it: the one that is open, and another one.
  assert.deepEqual([...slices.folded.data.depth, ...slices.folded.data.counts], [2, 1, 7, 2]);
  assert.equal(slices.rows, 3);
  // What is around all of it comes last.
  model.update(update({from: 100, now: 200, slices: [[0, [5], [191], [0]]]}));
  assert.deepEqual([...slices.data.depth], [0, 1, 2]);
  assert.deepEqual([...slices.folded.data.depth], [3, 2]);
  assert.equal(model.length, 200);
  const layout = new Layout(groupsOf(model));
  assert.deepEqual(layout.lanes.map(({title}) => title), ['app', 'main', 'b #3 · s']);
});

test('what is missing is said, and what has not ended ends', () => {
  const model = new LiveModel();
  model.name({texts: ['', 'a'], whats: [[0, 1]], processes: ['7'], threads: [['8', 0]], tracks: [[0, 0, 0, '0', '']]});
  model.update(update({slices: [[0, [10, 10], [0, 0], [0, 0]]]}));
  model.miss(3, 500);
  model.unfinished({base: '1000', slices: [[0, [20], [0], [0]]]});
  assert.deepEqual([...model.tracks[0].data.end], [100, Infinity]);
  assert.equal(model.missed, 3);
  model.update(update({from: 500, now: 600, losses: [[500, 600, 'p', 'r', 2, ['7']]]}));
  model.update(update({from: 600, now: 700, losses: [[600, 700, 'p', 'r', 3, ['7']]]}));
  const {intervals} = model.meta.losses;
  assert.deepEqual(intervals.map(([from, to, , , count]) => [from, to, count]), [[100, 500, 3], [500, 700, 5]]);
});

test('memory is bounded', () => {
  const model = new LiveModel();
  model.name({texts: ['', 'a'], whats: [[0, 1]], processes: ['7'], threads: [['8', 0]], tracks: [[0, 0, 0, '0', '']]});
  const each = 1000;
  for (let round = 0; round < 700; round++) {
    const from = round * 1e8;
    const times = [from, ...Array.from({length: each - 1}, () => 1e5)];
    model.update(update({from, now: from + 1e8, slices: [[0, times, times.map(() => 5e4), times.map(() => 0)]]}));
    model.forget();
  }
  const {n} = model.tracks[0].data;
  assert.ok(n >= 600 * each && n < 820 * each, `${n}`);
  assert.ok(model.begin >= 9e9 && model.begin <= 11e9, `${model.begin}`);
  // While the page is paused more is kept, but not everything.
  const {begin} = model;
  for (let round = 700; round < 3300; round++) {
    const from = round * 1e8;
    const times = [from, ...Array.from({length: each - 1}, () => 1e5)];
    model.update(update({from, now: from + 1e8, slices: [[0, times, times.map(() => 5e4), times.map(() => 0)]]}));
    model.forget(true);
    if (round === 1500) assert.equal(model.begin, begin);
  }
  assert.ok(model.begin > begin);
  assert.ok(model.tracks[0].data.n < 3.1e6, `${model.tracks[0].data.n}`);
});
