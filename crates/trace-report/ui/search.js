// Finds names, and goes through what has them in the order of time.
import {KIND} from './decode.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./model.js').Track} Track */

export class Search {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.text = '';
    /** By number of category and name, and by thread for CPUs. */
    this.has = new Uint8Array(0);
    this.hasThread = new Uint8Array(0);
    /** Tracks and places of what was found. @type {{track: number, i: number, ts: number}[]} */
    this.found = [];
    this.place = -1;
  }

  /** Looks for a text in names and categories, whatever their case. @param {string} text */
  async run(text) {
    const {model} = this;
    this.text = text;
    this.mark();
    this.found = [];
    this.place = -1;
    if (!text) return;
    await model.loadAll((track) => track.kind < KIND.counter);
    if (this.text !== text) return;
    const found = [];
    for (const track of model.tracks) {
      const {data} = track;
      if (!data || track.kind >= KIND.counter) continue;
      const has = track.kind === KIND.cpu ? this.hasThread : this.has;
      for (let i = 0; i < data.n; i++) if (has[data.what[i]]) found.push({track: track.id, i, ts: data.ts[i]});
    }
    this.found = found.sort((a, b) => a.ts - b.ts || a.track - b.track);
  }

  /** Finds the names that have the text. */
  mark() {
    const {model, text} = this;
    const wanted = text.toLowerCase();
    const matches = (/** @type {string} */ name) => (wanted !== '' && name.toLowerCase().includes(wanted) ? 1 : 0);
    const texts = model.texts.map(matches);
    this.has = Uint8Array.from(model.whats, ([category, name]) => texts[category] | texts[name]);
    this.hasThread = Uint8Array.from(model.threads, (thread) => matches(thread.name));
  }

  /** Whether something is found, so that everything else is drawn dimmed. @param {Track} track
   * @param {number} what */
  matches(track, what) {
    return (track.kind === KIND.cpu ? this.hasThread : this.has)[what] === 1;
  }

  /** The next one found, or the one before; the first one from a moment on. @param {number} step
   * @param {number} at */
  next(step, at) {
    const {found} = this;
    if (found.length === 0) return null;
    if (this.place < 0) {
      const first = found.findIndex(({ts}) => ts >= at);
      this.place = step > 0 ? Math.max(first, 0) : (first < 0 ? found.length : first) - 1;
    } else {
      this.place += step;
    }
    this.place = (this.place + found.length) % found.length;
    return found[this.place];
  }
}
