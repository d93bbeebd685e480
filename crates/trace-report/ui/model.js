// The trace: processes, threads, tracks, and what is on them, which is decoded when it is first used.
import {Bytes, KIND, hasLength} from './decode.js';
import {rowsOf} from './pyramid.js';
import {shown} from './text.js';

/** @typedef {import('./decode.js').Segment} Segment */
/** @typedef {import('./pyramid.js').Row} Row */
/** @typedef {{
 *   n: number, ts: Float64Array, end: Float64Array, depth: Uint16Array | null, what: Uint32Array,
 *   values: Float64Array | null, counts: Float64Array | null, sums: Float64Array | null, segments: Segment[], starts: number[], rows: Row[],
 * }} Data */
/** @typedef {{
 *   id: number, kind: number, owner: number, process: number, count: number, rows: number, what: number,
 *   counterId: string, series: string, blocks: number[], missing: number, parts: Segment[], data: Data | null,
 *   loading: Promise<void> | null, folded: Track | null,
 * }} Track */
/** @typedef {{at: number, phase: number, thread: number, what: number, isNext: boolean}} Flow */
/** @typedef {Record<string, any>} Meta */
/** @typedef {{
 *   texts: string[], whats: [number, number][], processes: [string, number][], threads: [string, number, number][],
 *   tracks: [number, number, number, number, number, string, number][], blocks: [number, number][][],
 * }} Listed */

/** What is on a track that was decoded. @param {Track} track @returns {Data} */
export function dataOf(track) {
  if (!track.data) throw new Error(`track ${track.id} is not decoded`);
  return track.data;
}

export class Model {
  /** @param {Meta} meta @param {Listed} json @param {(id: string, isPlain?: boolean) => Promise<any>} fetchPart */
  constructor(meta, json, fetchPart) {
    this.meta = meta;
    /** The first moment that is shown, and the last. */
    this.begin = 0;
    this.length = Math.max(meta.length, 1);
    this.base = BigInt(meta.base);
    this.fetchPart = fetchPart;
    /** How busy processes were over time, the busiest first. @type {Map<number, number[]>} */
    this.activity = new Map(meta.activity);
    /** @type {string[]} */
    this.texts = json.texts;
    /** @type {[number, number][]} */
    this.whats = json.whats;
    /** @type {{pid: string, name: string}[]} */
    this.processes = json.processes.map(([pid, name]) => ({pid, name: this.texts[name]}));
    /** @type {{tid: string, name: string, process: number}[]} */
    this.threads = json.threads.map(([tid, name, process]) => ({tid, name: this.texts[name], process}));
    /** @type {Track[]} */
    this.tracks = json.tracks.map(([kind, owner, count, rows, what, counterId, series], id) => {
      const isOfThread = [KIND.thread, KIND.instants, KIND.states].includes(kind);
      const process = isOfThread ? this.threads[owner].process : kind === KIND.cpu || kind === KIND.folded ? -1 : owner;
      return {
        id,
        kind,
        owner,
        process,
        count,
        rows,
        what,
        counterId,
        series: this.texts[series],
        blocks: [],
        missing: 0,
        parts: [],
        data: null,
        loading: null,
        folded: null,
      };
    });
    json.blocks.forEach((tracks, block) => tracks.forEach(([track]) => this.tracks[track].blocks.push(block)));
    for (const track of this.tracks) {
      track.missing = track.blocks.length;
      if (track.kind === KIND.folded) this.tracks[track.owner].folded = track;
    }
    /** @type {Map<number, Promise<void>>} */
    this.blocks = new Map();
    /** @type {Promise<void> | null} */
    this.flowsLoading = null;
    /** @type {Flow[]} */
    this.flows = [];
    /** Places of a thread's flow events, in the order of their times. @type {Map<number, number[]>} */
    this.flowsOfThread = new Map();
    /** Goes up when the map has to be drawn anew. */
    this.version = 0;
    this.onLoad = () => {};
  }

  /** @param {number} what */
  nameOf(what) {
    return this.texts[this.whats[what]?.[1] ?? 0];
  }

  /** @param {number} what */
  categoryOf(what) {
    return this.texts[this.whats[what]?.[0] ?? 0];
  }

  /** The name of something on a track. @param {Track} track @param {number} what */
  labelOf(track, what) {
    return this.isOfCpu(track) ? this.threadLabel(what) : this.nameOf(what);
  }

  /** Whether it has threads in place of names. @param {Track} track */
  isOfCpu(track) {
    return (track.kind === KIND.folded ? this.tracks[track.owner] : track).kind === KIND.cpu;
  }

  /** Whether it says what a thread does. @param {Track} track */
  isOfStates(track) {
    return (track.kind === KIND.folded ? this.tracks[track.owner] : track).kind === KIND.states;
  }

  /** @param {number} thread */
  threadLabel(thread) {
    const {tid, name} = this.threads[thread];
    return name || `thread ${tid}`;
  }

  /** @param {number} process */
  processLabel(process) {
    const {pid, name} = this.processes[process];
    return name || `process ${pid}`;
  }

  /** The track's title. @param {Track} track */
  titleOf(track) {
    if (track.kind === KIND.cpu) return `CPU ${track.owner}`;
    if (track.kind === KIND.logs) return 'log';
    if (track.kind === KIND.operations) return this.nameOf(track.what);
    if (track.kind !== KIND.counter) return this.threadLabel(track.owner);
    const id = track.counterId === '0' ? '' : ` #${track.counterId}`;
    const name = this.nameOf(track.what);
    return track.series && track.series !== name ? `${name}${id} · ${track.series}` : name + id;
  }

  /** A moment on the trace's own clock. @param {number} ns */
  absolute(ns) {
    return this.base + BigInt(Math.round(ns));
  }

  /** Decodes a track. @param {Track} track @returns {Promise<void>} */
  load(track) {
    track.loading ??= Promise.all(
      [...track.blocks, ...(track.folded?.blocks ?? [])].map((block) => this.loadBlock(block)),
    ).then(() => {
      // All that was on it may be drawn together.
      if (track.blocks.length > 0) return;
      track.count = 0;
      track.data = this.join(track);
      this.onLoad();
    });
    return track.loading;
  }

  /** Decodes everything of some kinds. @param {(track: Track) => boolean} has */
  async loadAll(has) {
    await Promise.all(this.tracks.filter(has).map((track) => this.load(track)));
  }

  /** @param {number} block @returns {Promise<void>} */
  loadBlock(block) {
    let loading = this.blocks.get(block);
    if (!loading) {
      loading = this.fetchPart(`t${block}`).then((/** @type {Segment[]} */ segments) => {
        for (const segment of segments) {
          const track = this.tracks[segment.track];
          track.parts[track.blocks.indexOf(block)] = segment;
          if (--track.missing > 0) continue;
          track.count = track.parts.reduce((sum, {n}) => sum + n, 0);
          track.data = this.join(track);
        }
        this.onLoad();
      });
      this.blocks.set(block, loading);
    }
    return loading;
  }

  /** @param {Track} track @returns {Data} */
  join(track) {
    const {parts} = track;
    /** @template {Float64Array | Uint32Array | Uint16Array} T
     * @param {new (n: number) => T} type @param {(part: Segment) => T | undefined} of @returns {T} */
    const joined = (type, of) => {
      if (parts.length === 1) return of(parts[0]) ?? new type(parts[0].n);
      const all = new type(track.count);
      let at = 0;
      for (const part of parts) {
        const column = of(part);
        if (column) all.set(/** @type {any} */ (column), at);
        at += part.n;
      }
      return all;
    };
    const ts = joined(Float64Array, (part) => part.ts);
    const isLong = hasLength(track.kind);
    const end = isLong ? joined(Float64Array, (part) => part.end) : ts;
    const depth = isLong ? joined(Uint16Array, (part) => part.depth) : null;
    const what = joined(Uint32Array, (part) => part.what);
    const values = track.kind === KIND.counter ? joined(Float64Array, (part) => part.values) : null;
    const isFolded = track.kind === KIND.folded;
    const counts = isFolded ? joined(Float64Array, (part) => part.counts) : null;
    const sums = isFolded ? joined(Float64Array, (part) => part.sums) : null;
    const starts = [];
    let from = 0;
    for (const part of parts) {
      starts.push(from);
      from += part.n;
    }
    const rows = values ? [] : rowsOf(depth, ts, end, this.length);
    track.parts = [];
    return {n: ts.length, ts, end, depth, what, values, counts, sums, segments: parts, starts, rows};
  }

  /** The arguments of something, as JSON text; nothing if there are none. @param {Data} data @param {number} i */
  argumentsText(data, i) {
    let part = 0;
    while (part + 1 < data.starts.length && data.starts[part + 1] <= i) part++;
    const {template, templates, texts} = data.segments[part];
    const place = i - data.starts[part];
    const number = template?.[place] ?? 0;
    if (!template || !templates || !texts || number === 0) return '';
    let use = 0;
    for (let before = 0; before < place; before++) if (template[before] === number) use++;
    let column = 0;
    return templates[number - 1].text.replace(/[\u0001-\u0003]/g, (mark) => {
      const value = templates[number - 1].columns[column++][use];
      return mark === '\u0001' ? String(value) : mark === '\u0002' ? `"${texts[value]}"` : texts[value];
    });
  }

  /** Arguments as names and texts. @param {Data} data @param {number} i @returns {[string, string][]} */
  argumentsOf(data, i) {
    const text = this.argumentsText(data, i);
    if (!text) return [];
    // Whole numbers of more than 53 bits would lose digits.
    const exact = text.replace(/([:[,]\s*)(-?\d{16,})(?=\s*[,}\]])/g, '$1"$2"');
    try {
      return Object.entries(JSON.parse(exact)).map(([name, value]) => [
        name,
        typeof value === 'string' ? value : JSON.stringify(value),
      ]);
    } catch {
      return [['arguments', text]];
    }
  }

  /** Decodes the flows. */
  loadFlows() {
    this.flowsLoading ??= this.fetchPart('flows', true).then((/** @type {Uint8Array} */ bytes) => {
      const input = new Bytes(bytes);
      const {unit} = this.meta;
      let at = 0;
      const n = input.number();
      for (let i = 0; i < n; i++) {
        const head = input.number();
        const isNext = head % 2 === 1;
        at = (isNext ? at : 0) + input.number() * unit;
        this.flows.push({at, phase: head >> 1, thread: input.number(), what: input.number(), isNext});
      }
      const order = Array.from(this.flows.keys()).sort((a, b) => this.flows[a].at - this.flows[b].at);
      for (const place of order) {
        const {thread} = this.flows[place];
        const list = this.flowsOfThread.get(thread);
        if (list) list.push(place);
        else this.flowsOfThread.set(thread, [place]);
      }
      this.onLoad();
    });
    return this.flowsLoading;
  }

  /** The innermost slice of a thread's track at a moment; −1 if there is none. @param {Track} track
   * @param {number} at */
  innermost(track, at) {
    const {data} = track;
    if (!data) return -1;
    for (let depth = data.rows.length - 1; depth >= 0; depth--) {
      const {index} = data.rows[depth];
      let [low, high] = [0, index.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (data.ts[index[middle]] <= at) low = middle + 1;
        else high = middle;
      }
      if (low > 0 && data.end[index[low - 1]] >= at) return index[low - 1];
    }
    return -1;
  }

  /** The thread's track with slices. @param {number} thread */
  trackOfThread(thread) {
    return this.tracks.find((track) => track.kind === KIND.thread && track.owner === thread) ?? null;
  }

  /** A thread with its process. @param {number} thread */
  whereOfThread(thread) {
    return `${shown(this.processLabel(this.threads[thread].process), 60)} › ${shown(this.threadLabel(thread), 60)}`;
  }

  /** The process and thread of a track, for people. @param {Track} track */
  whereOf(track) {
    if (track.process < 0) return this.titleOf(track);
    return `${shown(this.processLabel(track.process), 60)} › ${shown(this.titleOf(track), 60)}`;
  }
}
