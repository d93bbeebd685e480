// Mouse, touch and keyboard.

/** @param {any} app */
export function listen(app) {
  const {canvas, ruler, map, scroller} = app.elements;
  const box = (/** @type {Event} */ event) => /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect();
  const timeAt = (/** @type {number} */ x, /** @type {number} */ width) =>
    app.view.from + (x / width) * (app.view.to - app.view.from);

  scroller.addEventListener(
    'wheel',
    (/** @type {WheelEvent} */ event) => {
      const {left, width} = canvas.getBoundingClientRect();
      const x = event.clientX - left;
      const unit = event.deltaMode === 1 ? 16 : 1;
      const isAcross = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      const canScroll = scroller.scrollHeight > scroller.clientHeight + 1;
      if (isAcross) {
        event.preventDefault();
        app.pan(((event.deltaX || event.deltaY) * unit) / width);
      } else if (event.ctrlKey || event.metaKey || !canScroll) {
        event.preventDefault();
        app.zoom(
          Math.exp(
            Math.max(
              -1,
              Math.min(1, (event.deltaY * unit) / (event.ctrlKey && Math.abs(event.deltaY) < 40 ? 100 : 400)),
            ),
          ),
          Math.max(0, x) / width,
        );
      }
    },
    {passive: false},
  );
  for (const strip of [ruler, map]) {
    strip.addEventListener(
      'wheel',
      (/** @type {WheelEvent} */ event) => {
        event.preventDefault();
        const {left, width} = box(event);
        const at = strip === map ? 0.5 : (event.clientX - left) / width;
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
          app.pan((event.deltaX || event.deltaY) / width);
        else app.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 400))), at);
      },
      {passive: false},
    );
  }

  /** @type {Map<number, PointerEvent>} */
  const down = new Map();
  /** @type {{x: number, y: number, from: number, to: number, scroll: number, isRange: boolean, isMoved: boolean} | null} */
  let drag = null;
  const begin = (/** @type {PointerEvent} */ event) => {
    if (event.button !== 0) return;
    const target = /** @type {HTMLElement} */ (event.currentTarget);
    target.setPointerCapture(event.pointerId);
    down.set(event.pointerId, event);
    const {from, to} = app.view;
    drag = {
      x: event.clientX,
      y: event.clientY,
      from,
      to,
      scroll: scroller.scrollTop,
      isRange: event.shiftKey || target === ruler,
      isMoved: false,
    };
  };
  const move = (/** @type {PointerEvent} */ event) => {
    const {left, top, width} = box(event);
    if (down.size === 2 && down.has(event.pointerId)) {
      const [a, b] = [...down.values()].map((of) => of.clientX);
      down.set(event.pointerId, event);
      const [c, d] = [...down.values()].map((of) => of.clientX);
      const before = Math.max(Math.abs(a - b), 10);
      app.zoom(before / Math.max(Math.abs(c - d), 10), ((c + d) / 2 - left) / width);
      app.pan(((a + b) / 2 - (c + d) / 2) / width);
      if (drag) drag.isMoved = true;
      return;
    }
    if (!drag || !down.has(event.pointerId)) {
      app.hover(
        event.currentTarget === canvas ? [event.clientX - left, event.clientY - top] : null,
        timeAt(event.clientX - left, width),
        event,
      );
      return;
    }
    const across = event.clientX - drag.x;
    if (!drag.isMoved && Math.hypot(across, event.clientY - drag.y) < 4) return;
    drag.isMoved = true;
    if (drag.isRange) {
      const at = (/** @type {number} */ x) => (drag ? drag.from + ((x - left) / width) * (drag.to - drag.from) : 0);
      app.markRange(at(drag.x), at(event.clientX));
      return;
    }
    const by = (across / width) * (drag.to - drag.from);
    app.show(drag.from - by, drag.to - by);
    scroller.scrollTop = drag.scroll - (event.clientY - drag.y);
  };
  const end = (/** @type {PointerEvent} */ event) => {
    down.delete(event.pointerId);
    if (!drag) return;
    const {left, top} = box(event);
    if (drag.isRange && drag.isMoved) app.selectRange();
    else if (!drag.isMoved && event.type === 'pointerup' && event.currentTarget === canvas)
      app.click(event.clientX - left, event.clientY - top);
    else if (!drag.isMoved && event.currentTarget === ruler) app.clear();
    if (down.size === 0) drag = null;
  };
  for (const target of [canvas, ruler]) {
    target.addEventListener('pointerdown', begin);
    target.addEventListener('pointermove', move);
    target.addEventListener('pointerup', end);
    target.addEventListener('pointercancel', end);
    target.addEventListener('pointerleave', () => app.hover(null, null));
  }
  canvas.addEventListener('dblclick', () => app.zoomToSelected());

  const center = (/** @type {PointerEvent} */ event) => {
    const {left, width} = box(event);
    const half = (app.view.to - app.view.from) / 2;
    const {begin, length} = app.model;
    const at = begin + ((event.clientX - left) / width) * (length - begin);
    app.show(at - half, at + half);
  };
  map.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    map.setPointerCapture(event.pointerId);
    center(event);
  });
  map.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => event.buttons === 1 && center(event));

  /** @type {Record<string, () => void>} */
  const keys = {
    w: () => app.zoom(0.7, app.pointerPart()),
    s: () => app.zoom(1 / 0.7, app.pointerPart()),
    a: () => app.pan(-0.2),
    d: () => app.pan(0.2),
    ArrowLeft: () => app.pan(-0.2),
    ArrowRight: () => app.pan(0.2),
    ArrowUp: () => app.scrollBy(-54),
    ArrowDown: () => app.scrollBy(54),
    '+': () => app.zoom(0.7, 0.5),
    '=': () => app.zoom(0.7, 0.5),
    '-': () => app.zoom(1 / 0.7, 0.5),
    0: () => app.zoomTo(app.model.begin, app.model.length),
    Home: () => app.zoomTo(app.model.begin, app.model.length),
    f: () => app.zoomToSelected(),
    m: () => app.markSelected(),
    '[': () => app.step(-1),
    ']': () => app.step(1),
    n: () => app.searchStep(1),
    N: () => app.searchStep(-1),
    p: () => app.pinSelected(),
    h: () => app.hideSelected(),
    Escape: () => app.clear(),
    1: () => app.showTab('overview'),
    2: () => app.showTab('timeline'),
    '/': () => app.elements.search.focus(),
    '?': () => app.help(),
  };
  const inOverview = ['1', '2', '/', '?', 'Escape'];
  addEventListener('keydown', (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, dialog[open]')) return;
    if (app.tab === 'overview' && !inOverview.includes(event.key)) return;
    const key =
      keys[event.key] ?? (event.key.length === 1 && !event.shiftKey ? keys[event.key.toLowerCase()] : undefined);
    if (!key) return;
    event.preventDefault();
    key();
  });
  app.elements.search.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter') app.searchStep(event.shiftKey ? -1 : 1);
    if (event.key === 'Escape') {
      app.search('');
      scroller.focus();
    }
  });
  let typing = 0;
  app.elements.search.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => app.search(app.elements.search.value), 150);
  });
  scroller.addEventListener('scroll', () => app.schedule());
  addEventListener('resize', () => app.schedule());
  addEventListener('hashchange', () => app.restore());
}
