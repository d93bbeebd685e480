// The page of a recording that is still running: its server sends what is new ten times a second.
import {App} from '../app.js';
import {readTheme} from '../colour.js';
import {KIND} from '../decode.js';
import {byId, h} from '../element.js';
import {groupsOf} from '../layout.js';
import {LiveModel} from './model.js';
import {tablesOf} from './tables.js';

/** How much of the time the timeline shows at first, in nanoseconds. */
const WIDTH = 10e9;

class LiveApp extends App {
  constructor() {
    super(new LiveModel(), tablesOf);
    /** @type {LiveModel} */
    this.live = /** @type {any} */ (this.model);
    this.isPaused = false;
    this.width = WIDTH;
    /** Updates that are missing before the next one. */
    this.isMissing = 0;
    this.hasEnded = false;
    this.isStale = false;
    /** For measurements: the wall clock when a picture was drawn, and the oldest and the newest thing in it that was new,
     * in milliseconds. @type {[number, number, number][] | null} */
    this.ages = null;
    /** @type {[number, number] | null} */
    this.newest = null;
  }

  /** The address has only what the server needs. */
  save() {}

  async restore() {
    this.showTab('overview');
  }

  /** @param {number} from @param {number} to */
  show(from, to) {
    this.pause(true);
    super.show(from, to);
  }

  /** Zooms around the newest moment while that is followed. @param {number} factor @param {number} part */
  zoom(factor, part) {
    if (this.isPaused) {
      super.zoom(factor, part);
      return;
    }
    const {begin, length} = this.model;
    this.width = Math.min(Math.max(this.width * factor, 1e6), Math.max(length - begin, WIDTH));
    this.follow();
    this.schedule();
  }

  /** @param {import('../draw.js').Item} item */
  async select(item) {
    this.pause(true);
    await super.select(item);
  }

  /** @param {number} a @param {number} b */
  markRange(a, b) {
    this.pause(true);
    super.markRange(a, b);
  }

  /** @param {boolean} isPaused */
  pause(isPaused) {
    if (isPaused === this.isPaused) return;
    this.isPaused = isPaused;
    const button = byId('pause');
    button.setAttribute('aria-pressed', String(isPaused));
    button.textContent = isPaused ? 'Follow' : 'Pause';
    if (isPaused) return;
    this.width = Math.max(this.view.to - this.view.from, 1e6);
    this.follow();
    this.refresh(true);
  }

  follow() {
    const {length} = this.model;
    Object.assign(this.view, {from: length - this.width, to: length});
  }

  /** @param {number} by */
  async searchStep(by) {
    const {search} = this.view;
    // What was found has other places meanwhile.
    if (this.isStale && search.text) await search.run(search.text);
    this.isStale = false;
    await super.searchStep(by);
  }

  /** Shows what has come. @param {boolean} hasTable */
  refresh(hasTable) {
    const {live} = this;
    if (live.hasNewLanes) {
      live.hasNewLanes = false;
      this.layout.replace(groupsOf(live));
    }
    if (!this.isPaused) this.follow();
    this.schedule();
    if (hasTable && !this.isPaused && this.tab === 'overview') this.showOverview();
  }

  /** Keeps where the reader is. */
  showOverview() {
    const overview = byId('overview');
    const marked = getSelection();
    if (marked && !marked.isCollapsed && overview.contains(marked.anchorNode)) return;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement?.closest('[data-name]'))?.dataset.name;
    const place =
      focused === undefined
        ? -1
        : [...overview.querySelectorAll('table')].findIndex((table) => table.contains(document.activeElement));
    const scrolled = overview.scrollTop;
    super.showOverview();
    overview.scrollTop = scrolled;
    const again =
      place < 0 ? undefined : [...(overview.querySelectorAll('table')[place]?.querySelectorAll('[data-name]') ?? [])];
    again?.find((/** @type {any} */ link) => link.dataset.name === focused)?.focus();
  }

  /** @param {string} tab */
  showTab(tab) {
    super.showTab(tab);
    if (tab === 'overview') this.showOverview();
  }

  draw() {
    super.draw();
    const {ages, newest} = this;
    if (!ages || !newest) return;
    this.newest = null;
    // The picture is complete when the next one may begin.
    requestAnimationFrame(() => ages.push([performance.timeOrigin + performance.now(), ...newest]));
  }

  /** @param {import('./model.js').Update} update */
  update(update) {
    const {live, view} = this;
    if (this.isMissing > 0) live.miss(this.isMissing, update.from);
    this.isMissing = 0;
    this.keepingItems(() => {
      live.update(update);
      live.forget(this.isPaused);
    });
    this.isStale = true;
    if (this.ages) this.newest = agesOf(update) ?? this.newest;
    if (view.search.text && view.search.has.length < live.whats.length) view.search.mark();
    this.refresh(Boolean(update.table));
  }

  /** What is selected has another place after a change. @param {() => void} change */
  keepingItems(change) {
    const {view, live} = this;
    const places = [view.selected, view.hover].map((item) => {
      const data = item?.track.data;
      return item && data ? {item, ts: data.ts[item.i], what: data.what[item.i]} : null;
    });
    change();
    const [selected, hover] = places.map((place) => {
      const growing = place && live.growing.get(place.item.track);
      if (!place || !growing) return null;
      const i = growing.kind === KIND.counter ? growing.from(place.ts) : growing.find(place.ts, place.what);
      return i < 0 || i >= growing.n ? null : {track: place.item.track, i};
    });
    Object.assign(view, {selected, hover});
  }

  /** @param {string} text @param {boolean} [isBad] */
  tell(text, isBad = false) {
    const state = byId('state');
    if (state.textContent !== text) state.textContent = text;
    state.className = isBad ? 'bad' : '';
  }

  /** Takes what the server sends. */
  connect() {
    const events = new EventSource('events');
    const on = (/** @type {string} */ name, /** @type {(data: string) => void} */ take) =>
      events.addEventListener(name, (event) => {
        try {
          take(/** @type {MessageEvent} */ (event).data);
        } catch (error) {
          this.tell(`cannot be shown: ${error}`, true);
          throw error;
        }
      });
    events.addEventListener('open', () => this.tell('recording'));
    on('unfinished', (data) => this.keepingItems(() => this.live.unfinished(JSON.parse(data))));
    on('names', (data) => this.live.name(JSON.parse(data)));
    on('message', (data) => this.update(JSON.parse(data)));
    on('missed', (data) => (this.isMissing += Number(data)));
    on('end', (data) => {
      this.tell(JSON.parse(data).how);
      this.finish();
    });
    events.addEventListener('error', () => {
      // What came before would come again.
      events.close();
      if (this.hasEnded) return;
      this.tell('The connection to trace view is lost. What has come so far stays.', true);
      this.finish();
    });
  }

  /** Nothing more comes. */
  finish() {
    this.hasEnded = true;
    document.body.dataset.ended = 'true';
    this.refresh(true);
  }
}

/** When the oldest and the newest instant or slice of an update were recorded, in milliseconds of the wall clock.
 * @param {import('./model.js').Update} update @returns {[number, number] | null} */
function agesOf(update) {
  let [oldest, newest] = [Infinity, -Infinity];
  for (const [, times, lengths] of update.slices ?? [])
    times.reduce((before, difference, i) => {
      const at = before + difference;
      const end = at + lengths[i] - 1;
      if (lengths[i] > 0) [oldest, newest] = [Math.min(oldest, end), Math.max(newest, end)];
      return at;
    }, 0);
  for (const [, times] of update.points ?? [])
    times.reduce((before, difference) => {
      const at = before + difference;
      [oldest, newest] = [Math.min(oldest, at), Math.max(newest, at)];
      return at;
    }, 0);
  const onClock = (/** @type {number} */ at) => update.clock + (at - update.now) / 1e6;
  return oldest < Infinity ? [onClock(oldest), onClock(newest)] : null;
}

function begin() {
  readTheme();
  byId('name').textContent = 'live';
  const app = new LiveApp();
  Object.assign(globalThis, {traceReport: app});
  byId('pause').addEventListener('click', () => app.pause(!app.isPaused));
  addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key !== ' ' || event.ctrlKey || event.metaKey || target.closest('input, button, dialog[open]')) return;
    event.preventDefault();
    app.pause(!app.isPaused);
  });
  app.start().then(() => {
    app.connect();
    document.body.dataset.ready = 'true';
  });
}

try {
  begin();
} catch (error) {
  byId('overview').replaceChildren(h('p', {class: 'banner bad'}, `This page cannot be shown: ${error}.`));
}
