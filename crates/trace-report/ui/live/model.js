// A recording that is still running: what is kept of it, which grows with every message and forgets what
// is old.
import {KIND} from '../decode.js';
import {Model} from '../model.js';
import {Growing} from './growing.js';

/** @typedef {import('../model.js').Track} Track */
/** @typedef {import('./growing.js').Entry} Entry */
/** @typedef {{
 *   texts?: string[], whats?: [number, number][], processes?: string[], threads?: [string, number][],
 *   tracks?: [number, number, number, string, string][], thread_names?: [number, string][],
 *   process_names?: [number, string][],
 * }} NewNames */
/** @typedef {[number, number[], number[], number[], number[], number[]]} Columns */
/** @typedef {{
 *   base: string, from: number, now: number, clock: number, slices?: Columns[], folds?: Columns[], points?: Columns[],
 *   samples?: Columns[], gone?: [number, number, number][], losses?: [number, number, string, string, number, string[]][], totals: Record<string, number>,
 *   table?: any, sums?: [number, number, number, number][], more_sums?: number,
 * }} Update */

/** How long something is kept, in nanoseconds. */
const KEPT = 60e9;
/** Most entries of all tracks; of more, the older half is forgotten. */
const MOST_ENTRIES = 1500000;
/** Losses that are drawn. */
const MOST_LOSSES = 500;

export class LiveModel extends Model {
  constructor() {
    const meta = {
      name: 'FILE',
      length: 1,
      base: '0',
      activity: [],
      unit: 1,
      session: {},
      losses: {intervals: []},
      folded: {cut: 0},
    };
    const none = {texts: [], whats: [], processes: [], threads: [], tracks: [], blocks: []};
    super(/** @type {any} */ (meta), none, async () => null);
    /** What is on each track. @type {Map<Track, Growing>} */
    this.growing = new Map();
    /** The time of the last message. */
    this.now = 0;
    this.hasBegun = false;
    /** @type {Record<string, number>} */
    this.totals = {};
    /** Numbers for people, and the sums of the whole recording. @type {any} */
    this.table = null;
    /** @type {[number, number, number, number][]} */
    this.sums = [];
    this.moreSums = 0;
    /** Updates that the page did not get. */
    this.missed = 0;
    /** Whether there are other lanes, or other names of them, since this was last set to false. */
    this.hasNewLanes = false;
    this.nextForget = 0;
  }

  async load() {}

  async loadAll() {}

  async loadFlows() {}

  /** Arguments are only in the archive. */
  argumentsText() {
    return '';
  }

  /** Takes names and numbers. @param {NewNames} names */
  name(names) {
    this.texts.push(...(names.texts ?? []));
    this.whats.push(...(names.whats ?? []));
    for (const pid of names.processes ?? []) this.processes.push({pid, name: ''});
    for (const [tid, process] of names.threads ?? []) this.threads.push({tid, name: '', process});
    for (const [number, name] of names.thread_names ?? []) this.threads[number].name = name;
    for (const [number, name] of names.process_names ?? []) this.processes[number].name = name;
    for (const [kind, owner, what, counterId, series] of names.tracks ?? []) {
      const isOfThread = [KIND.thread, KIND.instants].includes(kind);
      const process = isOfThread ? this.threads[owner].process : kind === KIND.cpu ? -1 : owner;
      this.add({id: this.tracks.length, kind, owner, process, what, counterId, series});
    }
    if (names.tracks || names.thread_names || names.process_names) this.hasNewLanes = true;
  }

  /** @param {Pick<Track, 'id' | 'kind' | 'owner' | 'process' | 'what' | 'counterId' | 'series'>} of @returns {Track} */
  make(of) {
    const growing = new Growing(of.kind);
    /** @type {Track} */
    const track = {
      ...of,
      count: 0,
      rows: 0,
      blocks: [],
      missing: 0,
      parts: [],
      data: growing.data,
      loading: Promise.resolve(),
      folded: null,
    };
    this.growing.set(track, growing);
    return track;
  }

  /** @param {Parameters<LiveModel['make']>[0]} of */
  add(of) {
    this.tracks.push(this.make(of));
  }

  /** The track of slices that are drawn together. @param {Track} track @returns {Track} */
  foldedOf(track) {
    const {id, process, what, counterId, series} = track;
    return (track.folded ??= this.make({id: -1, kind: KIND.folded, owner: id, process, what, counterId, series}));
  }

  /** @param {Track} track @returns {Growing} */
  on(track) {
    return /** @type {Growing} */ (this.growing.get(track));
  }

  /** Takes what is new. @param {Update} update */
  update(update) {
    this.base = BigInt(update.base);
    const {from, now} = update;
    if (!this.hasBegun) this.begin = Math.min(from, now - 1);
    this.hasBegun = true;
    this.now = Math.max(this.now, now);
    this.length = Math.max(this.now, this.begin + 1);
    /** Tracks that have changed, and from when on. @type {Map<Track, number>} */
    const changed = new Map();
    for (const columns of update.slices ?? []) this.slices(columns, changed);
    for (const [number, ts, what] of update.gone ?? []) {
      const track = this.tracks[number];
      this.on(track).lose(ts, what, this.length);
      changed.set(track, Math.min(ts, changed.get(track) ?? Infinity));
    }
    for (const [track, ts, length, what, count, sum] of update.folds ?? []) {
      const main = this.tracks[track];
      const entries = entriesOf(ts, (i, at) => ({
        ts: at,
        end: at + length[i] - 1,
        what: what[i],
        value: 0,
        count: count[i],
        sum: sum[i],
      }));
      const of = this.on(main);
      this.on(this.foldedOf(main)).add(entries, this.length, (at) => of.depthAt(at));
      changed.set(main, changed.get(main) ?? Infinity);
    }
    for (const [track, ts, what] of update.points ?? [])
      this.take(
        track,
        entriesOf(ts, (i, at) => ({...NONE, ts: at, end: at, what: what[i]})),
        changed,
      );
    for (const [track, ts, values] of update.samples ?? []) {
      const of = /** @type {any} */ (this.tracks[track]);
      [of.min, of.max] = [Math.min(of.min ?? 0), Math.max(of.max ?? 0)];
      for (const value of values)
        if (value !== null) [of.min, of.max] = [Math.min(of.min, value), Math.max(of.max, value)];
      this.take(
        track,
        entriesOf(ts, (i, at) => ({...NONE, ts: at, end: at, value: values[i] ?? NaN})),
        changed,
      );
    }
    for (const [track, at] of changed) this.refresh(track, at);
    for (const loss of update.losses ?? []) this.lose(loss);
    this.totals = update.totals;
    if (update.table) {
      this.table = update.table;
      this.sums = update.sums ?? [];
      this.moreSums = update.more_sums ?? 0;
    }
  }

  /** @param {Columns} columns @param {Map<Track, number>} changed */
  slices([track, ts, length, what], changed) {
    const entries = entriesOf(ts, (i, at) => ({
      ...NONE,
      ts: at,
      end: length[i] === 0 ? Infinity : at + length[i] - 1,
      what: what[i],
    }));
    this.take(track, entries, changed);
  }

  /** @param {number} number @param {Entry[]} entries @param {Map<Track, number>} changed */
  take(number, entries, changed) {
    const track = this.tracks[number];
    const growing = this.on(track);
    const first = growing.add(entries, this.length);
    const at = first < growing.n ? growing.ts.room[first] : Infinity;
    changed.set(track, Math.min(at, changed.get(track) ?? Infinity));
  }

  /** Takes over what has changed on a track from a moment on. @param {Track} track @param {number} at */
  refresh(track, at) {
    const growing = this.on(track);
    const {folded} = track;
    if (folded) {
      const folds = this.on(folded);
      if (at < Infinity) folds.replace(at, this.length, (at) => growing.depthAt(at));
      folded.data = folds.data;
    }
    track.data = growing.data;
    const rows = Math.max(growing.rows.length, folded?.data?.rows.length ?? 0);
    if (rows !== track.rows) [track.rows, this.hasNewLanes] = [rows, true];
  }

  /** The slices that have not ended: all others have, without that the page got it. @param {Update} update */
  unfinished(update) {
    /** @type {Map<Track, Set<string>>} */
    const known = new Map();
    for (const [track, ts, , what] of update.slices ?? [])
      known.set(this.tracks[track], new Set(entriesOf(ts, (i, at) => `${at} ${what[i]}`)));
    for (const track of this.tracks) {
      const growing = this.on(track);
      if (growing.open === 0) continue;
      growing.endAllBut(known.get(track) ?? new Set(), this.now, this.length);
      this.refresh(track, -Infinity);
    }
    /** @type {Map<Track, number>} */
    const changed = new Map();
    for (const columns of update.slices ?? []) this.slices(columns, changed);
    for (const [track, at] of changed) this.refresh(track, at);
  }

  /** Notes that updates are missing up to a moment. @param {number} updates @param {number} until */
  miss(updates, until) {
    this.missed += updates;
    const pids = this.processes.map(({pid}) => pid);
    this.lose([
      this.now,
      until,
      'this page',
      'updates that this page was too slow for; the archive has them',
      updates,
      pids,
    ]);
  }

  /** Notes a loss, together with the one before if that is of the same kind and ends where this begins.
   * @param {[number, number, string, string, number, string[]]} loss */
  lose(loss) {
    const {intervals} = this.meta.losses;
    const [from, to, provider, reason, count, pids] = loss;
    for (const before of intervals.slice(-20)) {
      if (before[2] !== provider || before[3] !== reason || String(before[5]) !== String(pids)) continue;
      if (before[1] < from) continue;
      [before[1], before[4]] = [to, before[4] + count];
      this.version++;
      return;
    }
    intervals.push([from, to, provider, reason, count, pids]);
    if (intervals.length > MOST_LOSSES) intervals.shift();
    this.version++;
  }

  /** Forgets what is too old or too much; while the page is paused, only what is far too much. Whether it
   * has. @param {boolean} [isPaused] */
  forget(isPaused = false) {
    if (this.now < this.nextForget) return false;
    this.nextForget = this.now + 1e9;
    let entries = 0;
    for (const growing of this.growing.values()) entries += growing.n;
    if (isPaused && entries < 2 * MOST_ENTRIES) return false;
    const {begin, now} = this;
    const least = entries > MOST_ENTRIES ? Math.max(now - KEPT, begin + (now - begin) / 2) : now - KEPT;
    if (least <= begin) return false;
    this.begin = least;
    this.version++;
    let hasForgotten = false;
    for (const track of this.tracks) {
      const folded = track.folded && this.on(track.folded).forget(least, this.length);
      if (!this.on(track).forget(least, this.length) && !folded) continue;
      hasForgotten = true;
      this.refresh(track, Infinity);
    }
    return hasForgotten;
  }
}

const NONE = {ts: 0, end: 0, what: 0, value: 0, count: 0, sum: 0};

/** What a column of times has, which are differences. @template T @param {number[]} times
 * @param {(i: number, at: number) => T} make @returns {T[]} */
function entriesOf(times, make) {
  let at = 0;
  return times.map((difference, i) => make(i, (at += difference)));
}
