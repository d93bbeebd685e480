// Draws the timeline: lanes, the ruler, the picture of the whole trace.
import {sized} from './canvas.js';
import {KIND} from './decode.js';
import {colourOf, lookOf, lookOfState, palette, theme} from './colour.js';
import {MARKS, PAD, ROW, STATE, insideOf} from './layout.js';
import {dataOf} from './model.js';
import {after, visible} from './pyramid.js';
import {Strips} from './strips.js';
import {moment, short, shown, time} from './text.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Track} Track */
/** @typedef {import('./layout.js').Lane} Lane */
/** @typedef {import('./layout.js').Placed} Placed */
/** @typedef {{track: Track, i: number}} Item */
/** @typedef {{from: [Item | null, number, number], to: [Item | null, number, number]}} Arrow */

/** A name as it is drawn, with its width once that is known.
 * @typedef {import('./colour.js').Look & {name: string, text: string, size: number}} Label */
/** @typedef {{
 *   label: Label, left: number, right: number, y: number, height: number, length: number, isDimmed: boolean, mark: number,
 * }} Over */

/** Most rectangles of a picture. */
export const MOST = 20000;
/** Slices from so many pixels on have their name in them. */
const WIDE = 32;
/** Parts of the time in which a process is busy: at most so many rectangles. */
const PARTS = 240;
const FONT = '11px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/** A step of 1, 2 or 5 times a power of ten that is at least so long. @param {number} least */
export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-3)));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}

export class Drawing {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.rectangles = 0;
    /** @type {Placed[]} */
    this.placed = [];
    /** @type {any} */
    this.c = null;
    this.from = 0;
    this.to = 1;
    this.width = 1;
    this.height = 1;
    this.grain = 1;
    this.view = null;
    this.strips = new Strips();
    /** What is drawn over slices: names, and what marks them. @type {Over[]} */
    this.over = [];
    /** Names of slices, threads and states, by their numbers, in the colours of a palette. @type {Label[][]} */
    this.labels = [[], [], []];
    this.palette = -1;
    /** What was drawn into the ruler and into the map. */
    this.drawn = {ruler: '', map: '', back: ''};
    /** The moment that times in the ruler count from. */
    this.base = 0;
    /** The map without the part that is shown. @type {HTMLCanvasElement | null} */
    this.back = null;
  }

  /** Names of what is on a track. @param {Track} track */
  labelsOf(track) {
    if (this.palette !== palette) [this.palette, this.labels] = [palette, [[], [], []]];
    return this.labels[this.model.isOfStates(track) ? 2 : Number(this.model.isOfCpu(track))];
  }

  /** @param {Track} track @param {number} what @returns {Label} */
  labelOf(track, what) {
    const name = this.model.labelOf(track, what);
    const look = this.model.isOfStates(track) ? lookOfState(name) : lookOf(name);
    return (this.labelsOf(track)[what] = {...look, name, text: shown(name, 120), size: -1});
  }

  /** @param {number} ns */
  x(ns) {
    return ((ns - this.from) / (this.to - this.from)) * this.width;
  }

  /** Draws all lanes. @param {HTMLCanvasElement} canvas @param {any} view */
  lanes(canvas, view) {
    const {context, width, height} = sized(canvas);
    Object.assign(this, {c: context, width, height, from: view.from, to: view.to, view});
    this.rectangles = 0;
    this.placed = view.layout.placed(view.scroll, height);
    context.font = FONT;
    context.textBaseline = 'middle';
    context.fillStyle = theme.bg;
    context.fillRect(0, 0, width, height);
    this.grid(height);
    this.grain = ((this.to - this.from) / width) * Math.max(2, (2 * (width + 8)) / this.room(view));
    this.strips.begin(canvas.width, canvas.width / width);
    let wasSticky = false;
    for (const {lane, y, isSticky} of this.placed) {
      if (y > height || y + lane.height < 0) continue;
      if (!isSticky && y + lane.height <= view.layout.topHeight) continue;
      if (isSticky) {
        // What is below is drawn before.
        if (!wasSticky) this.flush();
        wasSticky = true;
        context.fillStyle = lane.isGroup ? theme.raised : theme.bg;
        context.fillRect(0, y, width, lane.height);
      }
      this.lane(lane, y, view);
      context.fillStyle = theme.line;
      context.fillRect(0, y + lane.height - 1, width, 1);
    }
    this.flush();
    this.losses(view, height);
    this.arrows(view);
    this.overlay(view, height);
  }

  /** How many rectangles each row may have. @param {any} view */
  room(view) {
    let [rows, parts] = [1, 0];
    for (const {lane, y} of this.placed) {
      const {main, marks, states} = lane;
      if (lane.isGroup) parts += view.layout.collapsed.has(lane.key) ? PARTS : 0;
      else if (main && main.kind !== KIND.counter) {
        const [first, last] = this.rowsOnScreen(y + insideOf(lane).main, main.rows);
        rows += Math.max(last - first, 0) * (main.folded ? 2 : 1);
      }
      rows += Number(marks !== null || main?.kind === KIND.counter) + (states ? (states.folded ? 2 : 1) : 0);
    }
    return Math.max(MOST - parts, MOST / 4) / rows;
  }

  /** The first row that is on the screen, and the one behind the last. @param {number} top
   * @param {number} rows @returns {[number, number]} */
  rowsOnScreen(top, rows) {
    return [Math.max(0, Math.floor(-top / ROW)), Math.min(rows, Math.ceil((this.height - top) / ROW))];
  }

  /** @param {number} height */
  grid(height) {
    const step = niceStep((90 * (this.to - this.from)) / this.width);
    this.c.fillStyle = theme.grid;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step)
      this.c.fillRect(Math.round(this.x(t)), 0, 1, height);
  }

  /** @param {Lane} lane @param {number} y @param {any} view */
  lane(lane, y, view) {
    if (lane.isGroup) {
      this.c.fillStyle = theme.raised;
      this.c.fillRect(0, y, this.width, lane.height);
      if (view.layout.collapsed.has(lane.key)) this.activity(lane.process, y, lane.height - 1, this.c);
      return;
    }
    const {main, marks, states} = lane;
    for (const track of [main, marks, states]) {
      if (track && !track.data) {
        this.model.load(track);
        this.c.fillStyle = theme.dim;
        this.c.fillText('…', 8, y + lane.height / 2);
        return;
      }
    }
    if (main?.kind === KIND.counter) this.counter(main, y + PAD, lane.height - 2 * PAD);
    else if (main) this.rows(main, y + insideOf(lane).main, view, ROW);
    if (states) this.rows(states, y + PAD, view, STATE);
    if (marks) this.marks(marks, y + insideOf(lane).marks, view);
  }

  /** @param {Track} track @param {number} top @param {any} view @param {number} height */
  rows(track, top, view, height) {
    if (track.folded?.data) this.folds(track.folded, top, height);
    this.slices(track, top, view, height);
  }

  /** @param {Track} track @param {number} top @param {any} view @param {number} height of a row */
  slices(track, top, view, height) {
    const {model, strips, width, from, to} = this;
    const {what, rows} = dataOf(track);
    const labels = this.labelsOf(track);
    const search = view.search.text ? view.search : null;
    const [selected, hover] = [view.selected, view.hover].map((item) => (item?.track === track ? item.i : -1));
    const scale = width / (to - from);
    const [first, last] = this.rowsOnScreen(top, rows.length);
    for (let depth = first; depth < last; depth++) {
      const y = top + depth * height;
      const line = strips.line(y, height - 1);
      visible(rows[depth], from, to, this.grain, (a, b, slice, count) => {
        this.rectangles++;
        const left = Math.max((a - from) * scale, -2);
        const right = Math.min((Math.min(b, model.length) - from) * scale, width + 2);
        const label = labels[what[slice]] ?? this.labelOf(track, what[slice]);
        const isDimmed = search !== null && !search.matches(track, what[slice]);
        const isMarked = count === 1 && (slice === selected || slice === hover);
        strips.put(line, left, right, isDimmed ? label.faint : label.pixel);
        const isOpen = b === Infinity;
        if (isMarked || (height === ROW && (isOpen || right - left >= WIDE)))
          this.over.push({
            label,
            left,
            right,
            y,
            height,
            length: b - a,
            isDimmed,
            mark: isMarked ? (slice === selected ? 2 : 1) : 0,
          });
      });
    }
  }

  /** Draws what was collected, below what comes. */
  flush() {
    const {c, over} = this;
    this.strips.flush(c);
    for (const {label, left, right, y, height, length, isDimmed, mark} of over) {
      const w = Math.max(right - left, 1);
      if (isDimmed) c.globalAlpha = 0.25;
      if (height === ROW && length === Infinity) this.tail(right, y);
      if (height === ROW && w >= WIDE) this.label(label, left, right, y, length);
      c.globalAlpha = 1;
      if (mark > 0) {
        c.strokeStyle = mark === 2 ? theme.text : theme.accent;
        c.lineWidth = mark;
        c.strokeRect(left + 1, y + 1, Math.max(w - 2, 1), height - 3);
      }
    }
    over.length = 0;
  }

  /** Slices that are drawn together: as high as they fill their time. @param {Track} track @param {number} top
   * @param {number} height of a row */
  folds(track, top, height) {
    const {c, width, from, to} = this;
    const {ts, end, what, rows, sums} = dataOf(track);
    const labels = this.labelsOf(track);
    const scale = width / (to - from);
    const [first, last] = this.rowsOnScreen(top, rows.length);
    c.globalAlpha = 0.7;
    for (let depth = first; depth < last; depth++) {
      const y = top + depth * height;
      visible(rows[depth], from, to, this.grain, (a, b, i) => {
        const left = Math.max((a - from) * scale, -2);
        const w = Math.max(Math.min((b - from) * scale, width + 2) - left, 1);
        const part = Math.min(1, (sums?.[i] ?? 0) / Math.max(end[i] - ts[i], 1));
        const size = Math.max(3, part * (height - 1));
        this.rectangles++;
        c.fillStyle = (labels[what[i]] ?? this.labelOf(track, what[i])).colour;
        c.fillRect(left, y + height - 1 - size, w, size);
      });
    }
    c.globalAlpha = 1;
  }

  /** Something that had not ended. @param {number} x @param {number} y */
  tail(x, y) {
    const {c} = this;
    c.fillStyle = theme.bg;
    for (let i = 0; i < 3; i++) c.fillRect(x - 4 - 5 * i, y, 2, ROW - 1);
  }

  /** A name, cut to its slice. @param {Label} label @param {number} left @param {number} right
   * @param {number} y @param {number} length */
  label(label, left, right, y, length) {
    const {c} = this;
    const [from, room] = [Math.max(left, 0) + 5, Math.min(right, this.width) - Math.max(left, 0) - 9];
    if (room < 12) return;
    const {text} = label;
    if (label.size < 0) label.size = Number(c.measureText(text).width);
    const {size} = label;
    c.fillStyle = theme['slice-text'];
    if (size > room) {
      const fit = Math.floor((text.length * (room - 8)) / size);
      if (fit >= 2) c.fillText(`${text.slice(0, fit)}…`, from, y + ROW / 2);
      return;
    }
    c.fillText(text, from, y + ROW / 2);
    if (room - size > 64 && length !== Infinity) {
      const alpha = c.globalAlpha;
      c.globalAlpha = alpha * 0.72;
      c.fillText(time(length), from + size + 8, y + ROW / 2);
      c.globalAlpha = alpha;
    }
  }

  /** @param {Track} track @param {number} y @param {any} view */
  marks(track, y, view) {
    const {c} = this;
    const {what, rows} = dataOf(track);
    const grain = Math.max(this.grain, (5 * (this.to - this.from)) / this.width);
    if (!rows[0]) return;
    visible(rows[0], this.from - grain, this.to + grain, grain, (from, _, i) => {
      const x = this.x(from);
      this.rectangles++;
      c.globalAlpha = view.search.text && !view.search.matches(track, what[i]) ? 0.25 : 1;
      const isSelected = view.selected?.track === track && view.selected.i === i;
      c.fillStyle = isSelected ? theme.accent : theme.dim;
      c.beginPath();
      c.moveTo(x, y + MARKS - 1);
      c.lineTo(x - 4, y + 1);
      c.lineTo(x + 4, y + 1);
      c.fill();
      c.globalAlpha = 1;
    });
  }

  /** @param {Track} track @param {number} y @param {number} height */
  counter(track, y, height) {
    const {c} = this;
    const data = dataOf(track);
    const {ts, n} = data;
    const values = /** @type {Float64Array} */ (data.values);
    let {min, max} = /** @type {any} */ (track);
    if (min === undefined) {
      [min, max] = [0, 0];
      for (const value of values) if (Number.isFinite(value)) [min, max] = [Math.min(min, value), Math.max(max, value)];
      Object.assign(track, {min, max});
    }
    const scale = height / (max - min || 1);
    const yOf = (/** @type {number} */ value) => y + height - ((Number.isFinite(value) ? value : 0) - min) * scale;
    let [low, high] = [0, n];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ts[middle] < this.from) low = middle + 1;
      else high = middle;
    }
    const zero = yOf(0);
    const colour = colourOf(this.model.titleOf(track));
    c.beginPath();
    let i = Math.max(low - 1, 0);
    let x = n > 0 ? this.x(ts[i]) : 0;
    c.moveTo(Math.max(x, -4), zero);
    // Within one pixel the smallest, the greatest and the last value are drawn.
    const jump = Math.max(1, Math.floor((after(identity(n), ts, this.to) - i) / MOST));
    while (i < n && ts[i] <= this.to) {
      const pixel = Math.floor(x);
      let [least, most] = [values[i], values[i]];
      let last = values[i];
      c.lineTo(Math.max(x, -4), yOf(last));
      for (i++; i < n; i += jump) {
        const next = this.x(ts[i]);
        if (next >= pixel + 1) break;
        last = values[i];
        [least, most] = [Math.min(least, last), Math.max(most, last)];
      }
      if (least !== most) for (const value of [least, most, last]) c.lineTo(x, yOf(value));
      x = i < n ? this.x(ts[i]) : this.width + 4;
      c.lineTo(Math.min(x, this.width + 4), yOf(last));
    }
    c.lineTo(Math.min(x, this.width + 4), zero);
    c.fillStyle = colour;
    c.fill();
    this.rectangles++;
    c.fillStyle = theme.dim;
    c.fillText(min < 0 ? `${short(min)} … ${short(max)}` : short(max), 6, y + 7);
  }

  /** How busy a process is, from sums. @param {number} process @param {number} y @param {number} height
   * @param {any} c */
  activity(process, y, height, c) {
    const parts = this.model.activity.get(process);
    if (!parts) return;
    const part = this.model.length / parts.length;
    const most = Math.max(...parts, 1);
    c.fillStyle = colourOf(this.model.processLabel(process));
    parts.forEach((/** @type {number} */ busy, /** @type {number} */ i) => {
      if (busy === 0) return;
      const [a, b] = [this.x(i * part), this.x((i + 1) * part)];
      if (b < 0 || a > this.width) return;
      const size = Math.max((busy / most) * (height - 4), 1);
      this.rectangles++;
      c.fillRect(a, y + height - size, Math.max(b - a, 1), size);
    });
  }

  /** Hatches where something is missing. @param {any} view @param {number} height */
  losses(view, height) {
    const {c, model} = this;
    /** How far losses of a provider are hatched. @type {Map<string, number>} */
    const hatched = new Map();
    for (const [first, last, provider, , , pids] of model.meta.losses.intervals) {
      if (first === null) continue;
      const [a, b] = [this.x(first), Math.max(this.x(last ?? first), this.x(first) + 3)];
      const whose = `${provider} ${pids}`;
      if (b < 0 || a > this.width || b < (hatched.get(whose) ?? -1) + 1) continue;
      hatched.set(whose, b);
      for (const {lane, y} of this.placed) {
        const pid = model.processes[lane.process]?.pid;
        if (lane.process < 0 ? provider !== 'ktrace_provider' : !pids.includes(pid)) continue;
        c.save();
        c.beginPath();
        c.rect(Math.max(a, 0), y, Math.min(b, this.width) - Math.max(a, 0), Math.min(lane.height, height));
        c.clip();
        c.strokeStyle = theme.loss;
        c.lineWidth = 1.5;
        c.beginPath();
        for (let x = Math.max(a, 0) - lane.height; x < Math.min(b, this.width); x += 8) {
          c.moveTo(x, y + lane.height);
          c.lineTo(x + lane.height, y);
        }
        c.stroke();
        c.restore();
      }
    }
  }

  /** Where an end of an arrow is. @param {any} end */
  placeOf([item, at]) {
    if (!item) return null;
    const {lane, y} = this.placed.find(({lane}) => lane.main === item.track || lane.main?.folded === item.track) ?? {};
    if (!lane || y === undefined) return null;
    const depth = item.track.data?.depth?.[item.i] ?? 0;
    return [this.x(at), y + insideOf(lane).main + depth * ROW + ROW / 2];
  }

  /** Flows of the selection. @param {any} view */
  arrows(view) {
    const {c} = this;
    for (const {from, to} of view.arrows) {
      const [a, b] = [this.placeOf(from), this.placeOf(to)];
      if (!a || !b) continue;
      c.strokeStyle = theme.accent;
      c.fillStyle = theme.accent;
      c.lineWidth = 1.75;
      const bend = Math.max(Math.min(Math.abs(b[0] - a[0]) / 2, 80), 18);
      c.beginPath();
      c.moveTo(a[0], a[1]);
      c.bezierCurveTo(a[0] + bend, a[1], b[0] - bend, b[1], b[0] - 5, b[1]);
      c.stroke();
      c.beginPath();
      c.moveTo(b[0], b[1]);
      c.lineTo(b[0] - 8, b[1] - 4);
      c.lineTo(b[0] - 8, b[1] + 4);
      c.fill();
      c.beginPath();
      c.arc(a[0], a[1], 2.5, 0, 7);
      c.fill();
    }
  }

  /** The range and the pointer. @param {any} view @param {number} height */
  overlay(view, height) {
    const {c} = this;
    if (view.range) {
      const [a, b] = view.range.map((/** @type {number} */ ns) => this.x(ns));
      c.fillStyle = theme.range;
      c.fillRect(a, 0, b - a, height);
      c.fillStyle = theme.accent;
      for (const x of [a, b]) c.fillRect(Math.round(x), 0, 1, height);
    }
    if (view.pointer !== null) {
      c.fillStyle = theme.dim;
      c.globalAlpha = 0.5;
      c.fillRect(Math.round(this.x(view.pointer)), 0, 1, height);
      c.globalAlpha = 1;
    }
  }

  /** The ruler above the lanes. @param {HTMLCanvasElement} canvas @param {any} view */
  ruler(canvas, view) {
    const {context: c, width, height} = sized(canvas);
    Object.assign(this, {from: view.from, to: view.to, width});
    const now = [view.from, view.to, view.range, canvas.width, canvas.height, palette].join();
    if (now === this.drawn.ruler) return this.base;
    this.drawn.ruler = now;
    c.fillStyle = theme.bg;
    c.fillRect(0, 0, width, height);
    c.font = FONT;
    c.textBaseline = 'middle';
    const step = niceStep((90 * (view.to - view.from)) / width);
    // Where the digits would be too many, they count from a moment that is written once.
    const wide = 1000 * step;
    const base = view.to / step > 1e5 ? Math.floor(view.from / wide) * wide : 0;
    for (let t = Math.floor(view.from / step) * step; t <= view.to; t += step) {
      const x = Math.round(this.x(t));
      c.fillStyle = theme.dim;
      c.fillRect(x, height - 6, 1, 6);
      c.fillText(base > 0 ? `+${moment(t - base, step)}` : moment(t, step), x + 4, height / 2 - 1);
      c.fillStyle = theme.line;
      for (let i = 1; i < 5; i++) c.fillRect(Math.round(this.x(t + (i * step) / 5)), height - 3, 1, 3);
    }
    if (view.range) {
      const [a, b] = view.range.map((/** @type {number} */ ns) => this.x(ns));
      c.fillStyle = theme.range;
      c.fillRect(a, 0, b - a, height);
      const text = time(view.range[1] - view.range[0]);
      const size = c.measureText(text).width;
      c.fillStyle = theme.accent;
      c.fillRect(a, height - 2, b - a, 2);
      const x = Math.min(Math.max((a + b - size) / 2, 4), width - size - 4);
      c.fillStyle = theme.raised;
      c.fillRect(x - 4, 2, size + 8, height - 6);
      c.fillStyle = theme.text;
      c.fillText(text, x, height / 2 - 1);
    }
    return (this.base = base);
  }

  /** The whole trace, with the part that is shown. @param {HTMLCanvasElement} canvas @param {any} view */
  map(canvas, view) {
    const {context: c, width, height} = sized(canvas);
    const {begin, length, version} = this.model;
    Object.assign(this, {from: begin, to: length, width});
    const back = [canvas.width, canvas.height, palette, version].join();
    const now = [view.from, view.to, back].join();
    if (now === this.drawn.map) return;
    this.drawn.map = now;
    if (back !== this.drawn.back) this.backOf(canvas, width, height);
    this.drawn.back = back;
    c.fillStyle = theme.bg;
    c.fillRect(0, 0, width, height);
    if (this.back) c.drawImage(this.back, 0, 0, width, height);
    const [a, b] = [this.x(view.from), this.x(view.to)];
    c.fillStyle = theme.bg;
    c.globalAlpha = 0.72;
    c.fillRect(0, 0, a, height);
    c.fillRect(b, 0, width - b, height);
    c.globalAlpha = 1;
    c.strokeStyle = theme.accent;
    c.lineWidth = 1.5;
    c.strokeRect(a + 0.75, 0.75, Math.max(b - a - 1.5, 2), height - 1.5);
  }

  /** Draws what does not change in the map. @param {HTMLCanvasElement} canvas @param {number} width
   * @param {number} height */
  backOf(canvas, width, height) {
    this.back ??= document.createElement('canvas');
    [this.back.width, this.back.height] = [canvas.width, canvas.height];
    const c = /** @type {CanvasRenderingContext2D} */ (this.back.getContext('2d'));
    c.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
    const order = [...this.model.activity.keys()].slice(0, 4);
    const each = height / Math.max(order.length, 1);
    order.forEach((process, i) => this.activity(process, i * each, each, c));
    for (const [first, last] of this.model.meta.losses.intervals) {
      c.fillStyle = theme.loss;
      if (first !== null) c.fillRect(this.x(first), 0, Math.max(this.x(last ?? first) - this.x(first), 2), 3);
    }
  }

  /** What is at a place of the canvas. @param {number} x @param {number} y @returns {Item | null} */
  at(x, y) {
    const {placed, from, to, width} = this;
    const hit = placed.filter((of) => y >= of.y && y < of.y + of.lane.height).pop();
    if (!hit || hit.lane.isGroup) return null;
    const {main, marks, states} = hit.lane;
    const ns = from + (x / width) * (to - from);
    const near = ((to - from) / width) * 5;
    const inside = y - hit.y;
    const tops = insideOf(hit.lane);
    if (states?.data && (inside < tops.marks || (!main && !marks))) return inRow(states, 0, ns, near);
    if (marks?.data && (inside < tops.main || !main)) {
      const {ts, rows} = marks.data;
      if (!rows[0]) return null;
      const place = after(rows[0].index, ts, ns);
      const best = [place - 1, place]
        .filter((i) => i >= 0 && i < ts.length)
        .sort((a, b) => Math.abs(ts[a] - ns) - Math.abs(ts[b] - ns))[0];
      return best !== undefined && Math.abs(ts[best] - ns) <= near ? {track: marks, i: best} : null;
    }
    if (!main?.data) return null;
    if (main.data.values) {
      const place = after(identity(main.data.n), main.data.ts, ns) - 1;
      return place >= 0 ? {track: main, i: place} : null;
    }
    return inRow(main, Math.floor((inside - tops.main) / ROW), ns, near);
  }
}

/** What is in a row of a track at a moment, or close to it. @param {Track} track @param {number} depth
 * @param {number} ns @param {number} near @returns {Item | null} */
function inRow(track, depth, ns, near) {
  const {ts, end, rows} = dataOf(track);
  const row = rows[depth];
  if (row) {
    const place = after(row.index, ts, ns) - 1;
    const slice = row.index[place];
    if (place >= 0 && end[slice] >= ns) return {track, i: slice};
    const next = row.index[place + 1];
    if (next !== undefined && ts[next] - ns <= near / 2) return {track, i: next};
    if (place >= 0 && ns - end[slice] <= near / 2) return {track, i: slice};
  }
  const of = track.folded?.data;
  const fold = of?.rows[depth];
  if (!of || !fold || !track.folded) return null;
  const i = fold.index[after(fold.index, of.ts, ns) - 1];
  return i !== undefined && of.end[i] + near >= ns ? {track: track.folded, i} : null;
}

/** Numbers from 0. @type {Uint32Array} */
let counted = new Uint32Array(0);

/** @param {number} n */
function identity(n) {
  if (counted.length < n) counted = Uint32Array.from({length: Math.max(n, 2 * counted.length)}, (_, i) => i);
  return counted.subarray(0, n);
}
