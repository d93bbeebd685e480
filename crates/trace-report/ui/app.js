// What is shown, and what happens: the state of the page.
import {watchSizes} from './canvas.js';
import {readTheme} from './colour.js';
import {KIND} from './decode.js';
import {detailsOf, flowsOf, rangeOf, tipOf} from './details.js';
import {Drawing} from './draw.js';
import {byId, h} from './element.js';
import {read, written} from './hash.js';
import {Heads} from './heads.js';
import {listen} from './input.js';
import {Layout, groupsOf} from './layout.js';
import {Model} from './model.js';
import {Search} from './search.js';
import {around} from './stats.js';
import {count, time} from './text.js';

/** @typedef {import('./draw.js').Item} Item */
/** @typedef {import('./layout.js').Lane} Lane */

/** The shortest time that fills the screen, in nanoseconds. */
const SHORTEST = 20;

export class App {
  /** @param {Model} model @param {(app: any) => any[]} overview makes the first screen */
  constructor(model, overview) {
    this.model = model;
    this.overview = overview;
    this.layout = new Layout(groupsOf(model));
    this.drawing = new Drawing(model);
    this.elements = {
      canvas: byId('lanes'),
      ruler: byId('ruler'),
      map: byId('map'),
      scroller: byId('scroller'),
      heads: byId('heads'),
      space: byId('space'),
      search: byId('search'),
      details: byId('details'),
      tip: byId('tip'),
      found: byId('found'),
      base: byId('base'),
      view: byId('timeline'),
      hidden: byId('hidden'),
    };
    this.view = {
      from: model.begin,
      to: model.length,
      scroll: 0,
      layout: this.layout,
      search: new Search(model),
      selected: /** @type {Item | null} */ (null),
      hover: /** @type {Item | null} */ (null),
      range: /** @type {[number, number] | null} */ (null),
      pointer: /** @type {number | null} */ (null),
      arrows: /** @type {any[]} */ ([]),
    };
    this.tab = 'overview';
    /** Milliseconds and rectangles of the last picture, and how many pictures there were. */
    this.frame = {ms: 0, rectangles: 0, count: 0};
    this.isScheduled = false;
    this.heads = new Heads(this);
    /** Heights of everything and of what is on the screen. */
    this.heights = [0, 0];
    /** The moment that times in the ruler count from. */
    this.base = 0;
    this.saving = 0;
    this.searching = Promise.resolve();
    model.onLoad = () => this.schedule();
  }

  showOverview() {
    byId('overview').replaceChildren(...this.overview(this).filter(Boolean));
  }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      if (this.tab === 'timeline') this.draw();
    });
  }

  draw() {
    const start = performance.now();
    const {canvas, ruler, map, scroller, space, base} = this.elements;
    const {view, drawing} = this;
    view.scroll = scroller.scrollTop;
    const heights = [this.layout.height + this.layout.topHeight, scroller.clientHeight];
    // Styles are only written when they change, so that nothing has to be laid out before it is measured.
    if (heights[0] !== this.heights[0]) space.style.height = `${heights[0]}px`;
    if (heights[1] !== this.heights[1]) byId('stage').style.height = `${heights[1]}px`;
    this.heights = heights;
    drawing.map(map, view);
    const from = drawing.ruler(ruler, view);
    if (from !== this.base) base.textContent = from > 0 ? time(from) : '';
    this.base = from;
    drawing.lanes(canvas, view);
    this.heads.update();
    this.frame = {ms: performance.now() - start, rectangles: drawing.rectangles, count: this.frame.count + 1};
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.save(), 200);
  }

  /** @param {string} key */
  unpin(key) {
    this.layout.pinned = this.layout.pinned.filter((other) => other !== key);
  }

  tellHidden() {
    const {hidden} = this.elements;
    const {size} = this.layout.hidden;
    hidden.hidden = size === 0;
    hidden.textContent = `Show ${count(size)} hidden`;
  }

  showHidden() {
    this.layout.hidden.clear();
    this.layout.update();
    this.tellHidden();
    this.schedule();
  }

  /** Shows a part of the time. @param {number} from @param {number} to */
  show(from, to) {
    const {begin: first, length} = this.model;
    const size = Math.min(Math.max(to - from, SHORTEST), (length - first) * 1.1);
    const margin = size * 0.5;
    const begin = Math.min(Math.max((from + to - size) / 2, first - margin), length + margin - size);
    Object.assign(this.view, {from: begin, to: begin + size, pointer: null});
    this.schedule();
  }

  /** @param {number} factor @param {number} part where of the width */
  zoom(factor, part) {
    const {from, to} = this.view;
    const {begin, length} = this.model;
    const size = Math.min(Math.max((to - from) * factor, SHORTEST), (length - begin) * 1.1);
    const fixed = from + (to - from) * part;
    this.show(fixed - size * part, fixed + size * (1 - part));
  }

  /** @param {number} part */
  pan(part) {
    const by = (this.view.to - this.view.from) * part;
    this.show(this.view.from + by, this.view.to + by);
  }

  /** @param {number} pixels */
  scrollBy(pixels) {
    this.elements.scroller.scrollTop += pixels;
  }

  pointerPart() {
    const {from, to, pointer} = this.view;
    return pointer === null ? 0.5 : (pointer - from) / (to - from);
  }

  /** @param {number} from @param {number} to */
  zoomTo(from, to) {
    this.showTab('timeline');
    this.show(from, to);
  }

  /** @param {[number, number] | null} place @param {number | null} at @param {PointerEvent} [event] */
  hover(place, at, event) {
    const {tip, canvas} = this.elements;
    this.view.pointer = at;
    this.view.hover = place && this.drawing.at(...place);
    tip.hidden = !this.view.hover;
    canvas.style.cursor = this.view.hover ? 'pointer' : '';
    if (this.view.hover && event) {
      tip.replaceChildren(...tipOf(this, this.view.hover));
      const {clientX: x, clientY: y} = event;
      const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
      tip.style.transform = `translate(${left}px, ${y + 26 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px)`;
    }
    this.schedule();
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const item = this.drawing.at(x, y);
    if (item) this.select(item);
    else this.clear();
  }

  /** Selects something and shows its details. @param {Item} item */
  async select(item) {
    this.view.selected = item;
    this.view.range = null;
    this.view.arrows = [];
    this.panel(detailsOf(this, item));
    if (item.track.kind !== KIND.thread) return;
    await this.model.loadFlows();
    const flows = flowsOf(this, item, true);
    if (flows.length > 0) {
      // What flows lead to is decoded before it is named.
      const threads = this.threadsOf(item);
      await Promise.all(threads.map((track) => this.model.load(track)));
      if (this.view.selected !== item) return;
      this.view.arrows = flowsOf(this, item, true)
        .map((flow) => {
          const [own, other] = [
            [flow.inside, flow.own],
            [flow.item ?? {track: flow.there, i: -1}, flow.at],
          ];
          return flow.isOut ? {from: own, to: other} : {from: other, to: own};
        })
        .filter((arrow) => arrow.from[0].track && arrow.to[0].track);
      this.panel(detailsOf(this, item));
    }
  }

  /** The tracks that flows of a slice lead to. @param {Item} item */
  threadsOf(item) {
    return [...new Set(flowsOf(this, item, true).flatMap((flow) => flow.there ?? []))];
  }

  /** @param {any[]} children */
  panel(children) {
    const {details} = this.elements;
    details.hidden = false;
    const close = h('button', {class: 'close', 'aria-label': 'Close details', onclick: () => this.clear()}, '×');
    details.replaceChildren(close, ...children.filter(Boolean));
    details.scrollTop = 0;
    this.schedule();
  }

  /** @param {number} a @param {number} b */
  markRange(a, b) {
    const clamped = [a, b]
      .map((at) => Math.min(Math.max(at, this.model.begin), this.model.length))
      .sort((a, b) => a - b);
    this.view.range = [clamped[0], clamped[1]];
    this.view.selected = null;
    this.view.arrows = [];
    this.schedule();
  }

  /** Shows the sums of the range. */
  async selectRange() {
    const {range} = this.view;
    if (!range) return;
    this.panel([h('p', {class: 'dim'}, 'Counting…')]);
    await this.model.loadAll((track) => [KIND.thread, KIND.operations, KIND.counter].includes(track.kind));
    if (this.view.range === range) this.panel(rangeOf(this, ...range));
  }

  clear() {
    Object.assign(this.view, {selected: null, range: null, arrows: []});
    this.elements.details.hidden = true;
    this.schedule();
  }

  /** Goes to something. @param {Item | null} item @param {number} [at] */
  async go(item, at = 0) {
    this.showTab('timeline');
    if (!item) {
      const half = (this.view.to - this.view.from) / 2;
      this.show(at - half, at + half);
      return;
    }
    const {track, i} = item;
    await this.model.load(track);
    const {data} = track;
    if (!data || !(i < data.n)) return;
    const lane = this.layout.laneOf(track.kind === KIND.folded ? this.model.tracks[track.owner] : track);
    if (lane) {
      this.layout.reveal(lane);
      this.tellHidden();
    }
    const begin = data.ts[i];
    const end = Math.min(data.end[i], this.model.length);
    const {from, to} = this.view;
    const size = to - from;
    const isSmall = end - begin < size / 100 && end > begin;
    if (isSmall || end - begin > size * 1.5) this.show(begin - (end - begin) * 4 - 500, end + (end - begin) * 4 + 500);
    else if (begin < from || end > to) this.show((begin + end - size) / 2, (begin + end + size) / 2);
    this.select(item);
    if (lane && !lane.isPinned) this.scrollTo(lane, (data.depth?.[i] ?? 0) * 18);
  }

  /** @param {Lane} lane @param {number} inside */
  scrollTo(lane, inside = 0) {
    const {scroller, space} = this.elements;
    space.style.height = `${this.layout.height + this.layout.topHeight}px`;
    const room = scroller.clientHeight - this.layout.topHeight;
    const y = lane.y + inside;
    if (y - 40 < scroller.scrollTop || y + 40 > scroller.scrollTop + room) scroller.scrollTop = y - room / 3;
    this.schedule();
  }

  /** @param {number} thread @param {number} from @param {number} to */
  async showThread(thread, from, to) {
    this.zoomTo(from, to);
    const track = this.model.trackOfThread(thread);
    const lane = track && this.layout.laneOf(track);
    if (!track || !lane) return;
    this.layout.reveal(lane);
    this.scrollTo(lane);
    await this.model.load(track);
    const i = this.model.innermost(track, to - (to - from) * 0.25);
    if (i >= 0) this.select({track, i});
  }

  zoomToSelected() {
    const {selected, range} = this.view;
    if (range) this.show(...range);
    if (!selected?.track.data) return;
    const {ts, end} = selected.track.data;
    const begin = ts[selected.i];
    this.show(...around(begin, Math.min(end[selected.i], this.model.length) - begin));
  }

  markSelected() {
    const data = this.view.selected?.track.data;
    const i = this.view.selected?.i ?? 0;
    if (!data?.depth) return;
    this.markRange(data.ts[i], data.end[i]);
    this.selectRange();
  }

  /** The next thing on the track. @param {number} by */
  step(by) {
    const {selected} = this.view;
    if (selected) this.go({track: selected.track, i: Math.max(0, Math.min(selected.i + by, selected.track.count - 1))});
  }

  pinSelected() {
    const lane = this.view.selected && this.layout.laneOf(this.view.selected.track);
    if (!lane) return;
    if (lane.isPinned) this.unpin(lane.key);
    else this.layout.pinned.push(lane.key);
    this.layout.update();
    this.schedule();
  }

  hideSelected() {
    const lane = this.view.selected && this.layout.laneOf(this.view.selected.track);
    if (!lane) return;
    this.layout.hidden.add(lane.key);
    this.unpin(lane.key);
    this.layout.update();
    this.tellHidden();
    this.clear();
  }

  /** Looks for a text, once. @param {string} text @returns {Promise<void>} */
  search(text) {
    const {search} = this.elements;
    if (search.value !== text) search.value = text;
    if (text !== this.view.search.text) this.searching = this.searchNew(text);
    return this.searching;
  }

  /** @param {string} text */
  async searchNew(text) {
    if (text) this.showTab('timeline');
    this.elements.found.textContent = text ? '…' : '';
    await this.view.search.run(text);
    this.tellFound();
    this.schedule();
  }

  tellFound() {
    const {found: all, place, text} = this.view.search;
    const {found} = this.elements;
    if (this.elements.search.value === text)
      found.textContent = !text
        ? ''
        : all.length === 0
          ? 'nothing'
          : place < 0
            ? count(all.length)
            : `${count(place + 1)} of ${count(all.length)}`;
  }

  /** @param {number} by */
  async searchStep(by) {
    const {search} = this.elements;
    await this.search(search.value);
    const next = this.view.search.next(by, this.view.from);
    this.tellFound();
    if (next) await this.go({track: this.model.tracks[next.track], i: next.i});
  }

  /** Looks for a name and goes to its first slice. @param {string} name */
  async find(name) {
    await this.search(name);
    await this.searchStep(1);
  }

  /** @param {string} tab */
  showTab(tab) {
    this.tab = tab;
    for (const name of ['overview', 'timeline']) {
      byId(name).hidden = name !== tab;
      byId(`tab-${name}`).setAttribute('aria-selected', String(name === tab));
      byId(`tab-${name}`).tabIndex = name === tab ? 0 : -1;
    }
    this.elements.tip.hidden = true;
    if (tab === 'overview') this.save();
    this.schedule();
  }

  help() {
    byId('help').showModal();
  }

  /** Writes the view into the address. */
  save() {
    const {from, to, selected, range, search} = this.view;
    const isWhole = from === this.model.begin && to === this.model.length;
    const hash = written({
      tab: this.tab === 'timeline' ? 'timeline' : undefined,
      ...(isWhole || this.tab !== 'timeline' ? {} : {from, to}),
      selected: selected ? [selected.track.id, selected.i] : undefined,
      range: range ?? undefined,
      search: search.text,
      pinned: this.layout.pinned,
      hidden: [...this.layout.hidden],
    });
    if (hash === (location.hash || '#')) return;
    try {
      history.replaceState(null, '', hash);
    } catch {
      // Too often, or not allowed where the page is.
    }
  }

  /** Shows what the address says. */
  async restore() {
    const place = read(location.hash);
    const {layout, model} = this;
    const known = (/** @type {string[] | undefined} */ keys) => (keys ?? []).filter((key) => layout.byKey.has(key));
    layout.pinned = known(place.pinned);
    layout.hidden = new Set(known(place.hidden));
    layout.update();
    this.tellHidden();
    if (place.search) await this.search(place.search);
    this.showTab(place.tab === 'timeline' ? 'timeline' : 'overview');
    if (place.from !== undefined && place.to !== undefined) this.show(place.from, place.to);
    const track = place.selected && model.tracks[place.selected[0]];
    if (track && place.selected) {
      await model.load(track);
      if (place.selected[1] < track.count) await this.select({track, i: place.selected[1]});
    }
    if (place.range) {
      this.markRange(...place.range);
      await this.selectRange();
    }
  }

  start() {
    readTheme();
    listen(this);
    this.showOverview();
    for (const name of ['overview', 'timeline']) {
      byId(`tab-${name}`).addEventListener('click', () => this.showTab(name));
      byId(`tab-${name}`).addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
        if (!['ArrowLeft', 'ArrowRight'].includes(event.key)) return;
        event.stopPropagation();
        this.showTab(name === 'overview' ? 'timeline' : 'overview');
        byId(`tab-${this.tab}`).focus();
      });
    }
    byId('next').addEventListener('click', () => this.searchStep(1));
    byId('previous').addEventListener('click', () => this.searchStep(-1));
    byId('help-button').addEventListener('click', () => this.help());
    byId('help-close').addEventListener('click', () => byId('help').close());
    byId('hidden').addEventListener('click', () => this.showHidden());
    byId('theme').addEventListener('click', () => {
      const {dataset} = document.documentElement;
      const isDark = dataset.theme ? dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
      dataset.theme = isDark ? 'light' : 'dark';
      readTheme();
      this.showOverview();
      this.schedule();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      readTheme();
      this.schedule();
    });
    const {canvas, ruler, map, scroller} = this.elements;
    new ResizeObserver(() => this.schedule()).observe(scroller);
    watchSizes([canvas, ruler, map], () => this.schedule());
    return this.restore();
  }
}
