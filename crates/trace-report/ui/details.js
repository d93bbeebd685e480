// The panel below the timeline: what is selected, or the sums of a range.
import {KIND, hasLength} from './decode.js';
import {h, table} from './element.js';
import {dataOf} from './model.js';
import {countersIn, selfTime, sqlOf, sqlOfRange, sumsOf} from './stats.js';
import {count, quantity, short, shown, time} from './text.js';

/** @typedef {import('./model.js').Track} Track */
/** @typedef {import('./draw.js').Item} Item */

const MOST_ROWS = 200;

/** A button that copies a question. @param {string} sql @param {string} name */
function question(sql, name) {
  const button = h(
    'button',
    {
      class: 'quiet',
      title: `Copies: ${sql}`,
      onclick: async () => {
        const command = `trace query ${`'${sql.replaceAll("'", `'\\''`)}'`} ${name}`;
        try {
          await navigator.clipboard.writeText(command);
          button.textContent = 'Copied';
        } catch {
          getSelection()?.selectAllChildren(box);
          button.textContent = 'Press Ctrl+C';
        }
        setTimeout(() => (button.textContent = 'Copy SQL'), 1500);
      },
    },
    'Copy SQL',
  );
  const box = h('code', {class: 'sql'}, sql);
  return h('details', {class: 'question'}, h('summary', {}, 'SQL'), box, button);
}

/** @param {string} name @param {any} value */
const fact = (name, value) => h('div', {class: 'fact'}, h('dt', {}, name), h('dd', {}, value));

/** Short slices that are drawn together. @param {any} app @param {Item} item */
function foldOf({model}, {track, i}) {
  const {ts, end, what, counts, sums} = dataOf(track);
  return [
    h('header', {}, h('h2', {}, quantity(counts?.[i] ?? 0, 'short slice'))),
    h(
      'dl',
      {},
      fact('Together', time(sums?.[i] ?? 0)),
      fact('Longest', shown(model.labelOf(track, what[i]), 200)),
      fact('Starts', `${time(ts[i])} after the begin`),
      fact('Within', time(end[i] - ts[i])),
      fact('Track', model.whereOf(model.tracks[track.owner])),
    ),
    h(
      'p',
      {class: 'dim'},
      `Slices shorter than ${time(model.meta.folded.cut)} are drawn together, because this trace has more than a million.`,
    ),
  ];
}

/** What is selected. @param {any} app @param {Item} item */
export function detailsOf(app, {track, i}) {
  const {model} = app;
  if (track.kind === KIND.folded) return foldOf(app, {track, i});
  const data = dataOf(track);
  const {ts, end, what} = data;
  const isLong = hasLength(track.kind);
  const name = track.kind === KIND.counter ? model.titleOf(track) : model.labelOf(track, what[i]);
  const category = track.kind === KIND.cpu ? '' : model.categoryOf(track.kind === KIND.counter ? track.what : what[i]);
  const facts = [fact('Starts', `${time(ts[i])} after the begin`), fact('Timestamp', `${model.absolute(ts[i])} ns`)];
  if (isLong) {
    const isOpen = end[i] === Infinity;
    facts.unshift(fact('Duration', isOpen ? 'not ended' : time(end[i] - ts[i])));
    if (track.kind === KIND.thread) facts.splice(1, 0, fact('Self time', time(selfTime(model, track, i))));
  }
  if (data.values) {
    const before = i > 0 ? data.values[i] - data.values[i - 1] : null;
    facts.unshift(fact('Value', String(data.values[i])));
    if (before !== null) facts.splice(1, 0, fact('Change', (before > 0 ? '+' : '') + short(before)));
  }
  facts.push(fact('Track', model.whereOf(track)));
  const rows = model
    .argumentsOf(data, i)
    .map((/** @type {[string, string]} */ [key, value]) => [shown(key, 200), shown(value, 5000)]);
  const flows = flowsOf(app, {track, i});
  const part = (/** @type {any} */ flow, /** @type {string} */ text, /** @type {number} */ sign) =>
    h(
      'li',
      {},
      h(
        'button',
        {class: 'link', onclick: () => app.go(flow.item ?? null, flow.at)},
        `${text} ${shown(flow.name, 80)}`,
      ),
      h(
        'span',
        {class: 'dim'},
        ` ${time(sign * (flow.at - flow.own))} ${sign > 0 ? 'later' : 'earlier'}, ${shown(flow.where, 80)}`,
      ),
    );
  return [
    h(
      'header',
      {},
      h('h2', {}, shown(name, 300) || '(no name)'),
      category && h('span', {class: 'chip'}, shown(category, 80)),
    ),
    h(
      'div',
      {class: 'columns'},
      h('dl', {}, ...facts),
      rows.length > 0 && h('div', {}, h('h3', {}, 'Arguments'), table('Arguments', ['name', 'value'], 9, rows)),
      flows.length > 0 &&
        h(
          'div',
          {},
          h('h3', {}, 'Flows'),
          h(
            'ul',
            {class: 'flows'},
            ...flows.map((flow) => (flow.isOut ? part(flow, '→ to', 1) : part(flow, '← from', -1))),
          ),
        ),
    ),
    question(sqlOf(model, track, i), app.model.meta.name),
  ];
}

/** Flow events of a slice, or also of the slices in it, with where they come from and go to. @param {any} app
 * @param {Item} item @param {boolean} [isDeep] @returns {any[]} */
export function flowsOf({model}, {track, i}, isDeep = false) {
  if (track.kind !== KIND.thread) return [];
  const {ts, end} = dataOf(track);
  const places = model.flowsOfThread.get(track.owner) ?? [];
  const found = [];
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (model.flows[places[middle]].at < ts[i]) low = middle + 1;
    else high = middle;
  }
  for (; low < places.length && found.length < 100; low++) {
    const place = places[low];
    const flow = model.flows[place];
    if (flow.at > end[i]) break;
    const inside = model.innermost(track, flow.at);
    if (inside !== i && !isDeep) continue;
    for (const [other, isOut] of [
      [place - 1, false],
      [place + 1, true],
    ]) {
      const linked = model.flows[other];
      if (!linked || !(isOut ? linked : flow).isNext) continue;
      const there = model.trackOfThread(linked.thread);
      const inner = there ? model.innermost(there, linked.at) : -1;
      const item = there && inner >= 0 ? {track: there, i: inner} : null;
      const name = item ? model.nameOf(there.data.what[inner]) : model.threadLabel(linked.thread);
      found.push({
        item,
        there,
        inside: {track, i: inside},
        at: linked.at,
        own: flow.at,
        isOut,
        name,
        where: model.whereOfThread(linked.thread),
      });
    }
  }
  return found;
}

/** Sums of a range. @param {any} app @param {number} from @param {number} to */
export function rangeOf(app, from, to) {
  const {model} = app;
  const all = (/** @type {number[]} */ kinds) =>
    model.tracks.filter((/** @type {Track} */ track) => kinds.includes(track.kind));
  const sums = sumsOf(model, all([KIND.thread, KIND.operations]), from, to);
  const counters = countersIn(model, all([KIND.counter]), from, to);
  const total = sums.reduce((sum, of) => sum + of.count, 0);
  const rows = sums
    .slice(0, MOST_ROWS)
    .map((of) => [
      h(
        'button',
        {class: 'link', onclick: () => app.go({track: of.at[0], i: of.at[1]})},
        shown(of.name, 120) || '(no name)',
      ),
      shown(of.category, 60),
      of.kind,
      count(of.count),
      time(of.sum),
      time(of.sum / of.count),
      time(of.longest),
    ]);
  const values = counters
    .slice(0, MOST_ROWS)
    .map((of) => [
      shown(of.title, 80),
      shown(of.process, 60),
      count(of.count),
      short(of.min),
      short(of.mean),
      short(of.max),
    ]);
  return [
    h(
      'header',
      {},
      h('h2', {}, `${time(to - from)} selected`),
      h(
        'span',
        {class: 'dim'},
        `from ${time(from)} to ${time(to)} · ${quantity(total, 'slice')} of ${quantity(sums.length, 'name')}`,
      ),
      h('button', {class: 'quiet', onclick: () => app.zoomTo(from, to)}, 'Zoom to it'),
    ),
    h(
      'div',
      {class: 'columns'},
      h(
        'div',
        {class: 'grow'},
        sums.length > 0
          ? table(
              'Slices in the range',
              ['name', 'category', 'of', 'count', 'time in range', 'mean', 'longest'],
              3,
              rows,
            )
          : h('p', {class: 'dim'}, 'No slices in this range.'),
      ),
      values.length > 0 &&
        h('div', {}, table('Counters in the range', ['counter', 'process', 'values', 'min', 'mean', 'max'], 2, values)),
    ),
    question(sqlOfRange(model, from, to), model.meta.name),
  ];
}

/** A few words beside the pointer. @param {any} app @param {Item} item */
export function tipOf({model}, {track, i}) {
  const {ts, end, what, values, counts, sums} = dataOf(track);
  if (counts) return [h('b', {}, quantity(counts[i], 'short slice')), time(sums?.[i] ?? 0)];
  if (values) return [h('b', {}, short(values[i])), shown(model.titleOf(track), 80)];
  const name = shown(model.labelOf(track, what[i]), 160) || '(no name)';
  const length = !hasLength(track.kind)
    ? `at ${time(ts[i])}`
    : end[i] === Infinity
      ? 'not ended'
      : time(end[i] - ts[i]);
  return [h('b', {}, name), length];
}
