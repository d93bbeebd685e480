// Which lanes there are, how high they are, and where.
import {KIND, hasLength} from './decode.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Track} Track */
/** @typedef {{
 *   key: string, isGroup: boolean, title: string, note: string, process: number, main: Track | null,
 *   marks: Track | null, states: Track | null, y: number, height: number, isPinned: boolean, count: number,
 * }} Lane */
/** @typedef {{lane: Lane, y: number, isSticky: boolean}} Placed */

export const ROW = 18;
export const MARKS = 12;
export const STATE = 8;
export const PAD = 4;
const GROUP = 26;
const COUNTER = 40;
/** More lanes than this begin collapsed. */
const MANY = 300;

/** Where instants are in a lane, below the states of the thread, and where slices are. @param {Lane} lane */
export function insideOf({main, marks, states}) {
  const below = PAD + (states ? STATE : 0);
  return {marks: below, main: main?.kind === KIND.counter ? PAD : below + (marks ? MARKS : 0)};
}

/** @param {Lane} lane */
function heightOf(lane) {
  const {main} = lane;
  if (main?.kind === KIND.counter) return COUNTER;
  return insideOf(lane).main + PAD + (main ? Math.max(main.rows, 1) * ROW : 6);
}

const {compare} = new Intl.Collator('en', {numeric: true});

/** All lanes by group. @param {Model} model @returns {Lane[][]} */
export function groupsOf(model) {
  /** @param {Partial<Lane>} lane @returns {Lane} */
  const lane = (lane) => ({
    key: '',
    isGroup: false,
    title: '',
    note: '',
    process: -1,
    main: null,
    marks: null,
    states: null,
    y: 0,
    height: GROUP,
    isPinned: false,
    count: 0,
    ...lane,
  });
  /** @type {Map<number, Track[]>} */
  const byProcess = new Map();
  for (const track of model.tracks) {
    if (track.kind === KIND.folded) continue;
    const list = byProcess.get(track.process);
    if (list) list.push(track);
    else byProcess.set(track.process, [track]);
  }
  const groups = [];
  for (const [process, tracks] of byProcess) {
    /** @type {Map<string, Lane>} */
    const lanes = new Map();
    for (const track of tracks) {
      const isOfThread = [KIND.thread, KIND.instants, KIND.states].includes(track.kind);
      const key = isOfThread ? `h${track.owner}` : `t${track.id}`;
      const found = lanes.get(key) ?? lane({key, process, title: model.titleOf(track)});
      if (track.kind === KIND.instants || track.kind === KIND.logs) found.marks = track;
      else if (track.kind === KIND.states) found.states = track;
      else found.main = track;
      if (isOfThread) found.note = model.threads[track.owner].tid;
      if (track.kind !== KIND.states) found.count += track.count;
      found.height = heightOf(found);
      lanes.set(key, found);
    }
    // Threads of which only the states are known come behind those with slices.
    const order = (/** @type {Lane} */ of) => [0, 2, 0, 0.5, 4, 3][(of.main ?? of.marks)?.kind ?? -1] ?? 1;
    const pid = model.processes[process]?.pid;
    const isMain = (/** @type {Lane} */ of) => Number(of.note === pid);
    const sorted = [...lanes.values()].sort(
      (a, b) => order(a) - order(b) || isMain(b) - isMain(a) || compare(a.title, b.title),
    );
    const count = sorted.reduce((sum, {count}) => sum + count, 0);
    const title = process < 0 ? 'CPUs' : model.processLabel(process);
    const note = process < 0 ? '' : `pid ${model.processes[process].pid}`;
    groups.push([lane({key: `p${process}`, isGroup: true, title, note, process, count}), ...sorted]);
  }
  // Processes with slices come first, the largest of them at the top; those of which only states are known last.
  const rank = (/** @type {Lane[]} */ [group, ...lanes]) =>
    group.process < 0
      ? 0
      : lanes.some(({main}) => main && hasLength(main.kind))
        ? 1
        : lanes.some(({marks}) => marks)
          ? 2
          : lanes.some(({main}) => main)
            ? 3
            : 4;
  return groups.sort((a, b) => rank(a) - rank(b) || b[0].count - a[0].count);
}

/** The groups that begin collapsed: all but the busiest, if there are many lanes. @param {Lane[][]} groups */
export function collapsedAtFirst(groups) {
  const collapsed = new Set();
  let lanes = 0;
  for (const [group, ...rest] of groups) {
    lanes += rest.length;
    if (lanes > MANY && lanes > rest.length) collapsed.add(group.key);
  }
  return collapsed;
}

export class Layout {
  /** @param {Lane[][]} groups */
  constructor(groups) {
    this.groups = groups;
    this.collapsed = collapsedAtFirst(groups);
    /** @type {Set<string>} */
    this.hidden = new Set();
    /** @type {string[]} */
    this.pinned = [];
    /** @type {Map<string, Lane>} */
    this.byKey = new Map(groups.flat().map((lane) => [lane.key, lane]));
    /** @type {Lane[]} */
    this.lanes = [];
    /** @type {Lane[]} */
    this.top = [];
    this.height = 0;
    this.topHeight = 0;
    this.update();
  }

  /** Has other lanes, in the state in which those with the same keys were. @param {Lane[][]} groups */
  replace(groups) {
    const before = this.byKey;
    for (const key of collapsedAtFirst(groups)) if (!before.has(key)) this.collapsed.add(key);
    this.groups = groups;
    this.byKey = new Map(groups.flat().map((lane) => [lane.key, lane]));
    this.update();
  }

  /** Places all lanes anew. */
  update() {
    this.top = this.pinned.flatMap((key) => this.byKey.get(key) ?? []);
    let y = 0;
    for (const lane of this.top) {
      [lane.y, lane.isPinned] = [y, true];
      y += lane.height;
    }
    this.topHeight = y;
    this.lanes = [];
    y = 0;
    for (const [group, ...lanes] of this.groups) {
      if (this.hidden.has(group.key)) continue;
      const shown = this.collapsed.has(group.key)
        ? []
        : lanes.filter((lane) => !this.hidden.has(lane.key) && !this.pinned.includes(lane.key));
      for (const lane of [group, ...shown]) {
        [lane.y, lane.isPinned] = [y, false];
        y += lane.height;
        this.lanes.push(lane);
      }
    }
    this.height = y;
  }

  /** What is on the screen: pinned lanes at the top, the group of the topmost lane below them.
   * @param {number} scroll @param {number} height @returns {Placed[]} */
  placed(scroll, height) {
    /** @type {Placed[]} */
    const placed = [];
    let [low, high] = [0, this.lanes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.lanes[middle].y + this.lanes[middle].height <= scroll) low = middle + 1;
      else high = middle;
    }
    // Behind the last lane, until the browser has noticed that there are fewer.
    let group = Math.min(low, this.lanes.length - 1);
    while (group > 0 && !this.lanes[group].isGroup) group--;
    let next = Infinity;
    for (let i = low; i < this.lanes.length && this.lanes[i].y < scroll + height - this.topHeight; i++) {
      const lane = this.lanes[i];
      if (i === group) continue;
      if (lane.isGroup) next = Math.min(next, lane.y - scroll);
      placed.push({lane, y: this.topHeight + lane.y - scroll, isSticky: false});
    }
    if (this.lanes[group]) {
      const lane = this.lanes[group];
      const y = this.topHeight + Math.min(Math.max(lane.y - scroll, 0), next - lane.height);
      placed.push({lane, y, isSticky: true});
    }
    for (const lane of this.top) placed.push({lane, y: lane.y, isSticky: true});
    return placed;
  }

  /** The lane at a height of the screen. @param {Placed[]} placed @param {number} y */
  static at(placed, y) {
    const found = placed.filter((of) => y >= of.y && y < of.y + of.lane.height);
    return found[found.length - 1] ?? null;
  }

  /** The lane of a track. @param {Track} track */
  laneOf(track) {
    for (const lane of this.byKey.values())
      if (lane.main === track || lane.marks === track || lane.states === track) return lane;
    return null;
  }

  /** Makes a lane visible, and returns where it is. @param {Lane} lane */
  reveal(lane) {
    this.hidden.delete(lane.key);
    this.hidden.delete(`p${lane.process}`);
    this.collapsed.delete(`p${lane.process}`);
    this.update();
  }
}
