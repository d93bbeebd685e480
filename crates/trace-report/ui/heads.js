// The titles of the lanes, beside the canvas.
import {h} from './element.js';
import {count, shown} from './text.js';

/** @typedef {import('./layout.js').Lane} Lane */

export class Heads {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    /** What is on the screen, and where. */
    this.keys = '';
    /** @type {Map<string, HTMLElement>} */
    this.byKey = new Map();
    /** @type {number[]} */
    this.places = [];
  }

  /** Shows the titles of what is on the screen. */
  update() {
    const {layout, drawing, elements} = this.app;
    const {heads} = elements;
    /** @type {import('./layout.js').Placed[]} */
    const placed = drawing.placed;
    const keys = placed.map(
      ({lane, isSticky}) =>
        `${lane.key} ${isSticky} ${lane.isPinned} ${layout.collapsed.has(lane.key)} ${lane.height} ${lane.title}`,
    );
    const shownNow = keys.join();
    if (shownNow !== this.keys) {
      const focused = /** @type {HTMLElement | null} */ (document.activeElement?.closest('[data-key]'))?.dataset.key;
      const action = document.activeElement?.className;
      this.keys = shownNow;
      const old = this.byKey;
      this.byKey = new Map();
      placed.forEach(({lane, isSticky}, i) => this.byKey.set(keys[i], old.get(keys[i]) ?? this.head(lane, isSticky)));
      heads.replaceChildren(...this.byKey.values());
      this.places = [];
      const again = [...heads.children].find((child) => child.dataset.key === focused);
      if (focused && again) (again.querySelector(`.${action || 'x'}`) ?? again.querySelector('button'))?.focus();
    }
    placed.forEach(({y}, i) => {
      if (y === this.places[i]) return;
      this.places[i] = y;
      const head = this.byKey.get(keys[i]);
      if (head) head.style.transform = `translateY(${y}px)`;
    });
  }

  /** @param {Lane} lane @param {boolean} isSticky */
  head(lane, isSticky) {
    const {app} = this;
    const {layout} = app;
    const act = (/** @type {() => void} */ change) => () => {
      change();
      layout.update();
      app.schedule();
      app.tellHidden();
    };
    const {key} = lane;
    const title = shown(lane.title, 120) || '(no name)';
    const style = {height: `${lane.height}px`};
    const hide = h(
      'button',
      {
        class: 'hide',
        title: `Hide ${title}`,
        'aria-label': `Hide ${title}`,
        onclick: act(() => layout.hidden.add(key) && app.unpin(key)),
      },
      '×',
    );
    if (lane.isGroup) {
      const isOpen = !layout.collapsed.has(key);
      const toggle = act(() => void (isOpen ? layout.collapsed.add(key) : layout.collapsed.delete(key)));
      return h(
        'div',
        {class: 'head group sticky', style, 'data-key': key},
        h(
          'button',
          {class: 'toggle', 'aria-expanded': String(isOpen), title, onclick: toggle},
          h('span', {class: 'arrow', 'aria-hidden': 'true'}, isOpen ? '▾' : '▸'),
          h('span', {class: 'title'}, title),
          h('span', {class: 'dim'}, lane.note),
        ),
        hide,
      );
    }
    const pin = h(
      'button',
      {
        class: 'pin',
        'aria-pressed': String(lane.isPinned),
        title: lane.isPinned ? 'Unpin' : 'Pin to the top',
        'aria-label': `${lane.isPinned ? 'Unpin' : 'Pin'} ${title}`,
        onclick: act(() => (lane.isPinned ? app.unpin(key) : layout.pinned.push(key))),
      },
      lane.isPinned ? '◆' : '◇',
    );
    const of = lane.isPinned && lane.process >= 0 ? shown(app.model.processLabel(lane.process), 40) : lane.note;
    return h(
      'div',
      {
        class: isSticky ? 'head sticky' : 'head',
        style,
        'data-key': key,
        title: `${title} ${lane.note}${lane.count > 0 ? ` · ${count(lane.count)}` : ''}`,
      },
      h('span', {class: 'title'}, title),
      h('span', {class: 'dim'}, of),
      pin,
      hide,
    );
  }
}
