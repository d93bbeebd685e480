// The first screen: what is worth knowing of the whole trace.
import {card, h, table} from './element.js';
import {colourOf} from './colour.js';
import {around} from './stats.js';
import {bytes, count, quantity, short, shown, time} from './text.js';

/** @typedef {import('./element.js').Child} Child */

const ROWS = 12;

/** A bar behind a number. @param {number} part @param {string} name */
const bar = (part, name) =>
  h('div', {class: 'bar'}, h('i', {style: {width: `${Math.max(part * 100, 0.5)}%`, background: colourOf(name)}}));

/** Rows of which only the first are shown at once. @param {any[]} rows @param {(rows: any[]) => HTMLElement} make */
function expandable(rows, make) {
  const box = h('div', {class: 'scroll', tabindex: 0}, make(rows.slice(0, ROWS)));
  if (rows.length <= ROWS) return box;
  const more = h(
    'button',
    {class: 'quiet', onclick: () => box.replaceChildren(make(rows))},
    `Show all ${count(rows.length)}`,
  );
  box.append(more);
  return box;
}

/** @param {any} meta @param {any} app */
function lossesOf(meta, app) {
  const {losses, stopped} = meta;
  if (losses.is_whole && !stopped) {
    const text =
      losses.ledgers > 0
        ? `Nothing is missing: the records of ${losses.ledgers === 1 ? 'the program' : `${losses.ledgers} programs`} add up.`
        : 'No losses are reported.';
    return h('p', {class: 'banner good'}, h('span', {'aria-hidden': 'true'}, '✓ '), text);
  }
  const rows = losses.intervals
    .slice(0, 50)
    .map((/** @type {any[]} */ [first, last, provider, reason, n]) => [
      shown(provider ?? '', 60),
      shown(reason, 80),
      first === null
        ? ''
        : h(
            'button',
            {class: 'link', onclick: () => app.zoomTo(...around(first, (last ?? first) - first))},
            `${time(first)} – ${time(last ?? first)}`,
          ),
      n === null ? 'unknown' : count(n),
    ]);
  return h(
    'section',
    {class: 'banner bad'},
    h('h2', {}, 'Parts of this trace are missing'),
    h(
      'ul',
      {},
      ...losses.reasons.map((/** @type {string} */ reason) => h('li', {}, shown(reason, 300))),
      stopped && h('li', {}, shown(stopped, 300)),
    ),
    rows.length > 0 && table('Losses', ['program', 'reason', 'when', 'records'], 3, rows),
  );
}

/** @param {any} meta @param {any} app */
function tilesOf(meta, app) {
  const {session, events, length} = meta;
  const {threads} = app.model;
  const busy = new Set(
    app.model.tracks
      .map((/** @type {any} */ track) => track.process)
      .filter((/** @type {number} */ process) => process >= 0),
  ).size;
  const tile = (/** @type {string} */ value, /** @type {string} */ name, /** @type {string} */ note = '') =>
    h(
      'div',
      {class: 'tile'},
      h('span', {class: 'value'}, value),
      h('span', {class: 'name'}, name),
      note && h('span', {class: 'dim'}, note),
    );
  const seconds = length / 1e9;
  return h(
    'div',
    {class: 'tiles'},
    tile(
      time(length),
      'duration',
      session.start_utc
        ? `${new Date(Number(session.start_utc) / 1e6).toISOString().replace('T', ' ').slice(0, 19)} UTC`
        : '',
    ),
    tile(count(busy), busy === 1 ? 'process' : 'processes', quantity(threads.length, 'thread')),
    tile(short(events), 'events', seconds > 0 ? `${short(Math.round(events / seconds))} per second` : ''),
    tile(bytes(meta.bytes), 'trace', quantity(meta.records, 'record')),
    session.host && tile(shown(session.host, 40), 'host', shown(session.kernel ?? '', 60)),
  );
}

/** @param {any} meta */
function costOf(meta) {
  const {events, length} = meta;
  if (!meta.cost) return h('p', {}, 'The trace does not say what an event cost, so what recording cost is unknown.');
  const [cost, instant, duration, counter] = meta.cost;
  const part = length > 0 ? (100 * cost) / length : 0;
  return h(
    'p',
    {},
    h('b', {}, `about ${time(cost)}`),
    ` of processor time for ${quantity(events, 'event')}, by what one cost when the recording began: an instant ${time(instant)}, a duration ${time(duration)}, a counter ${time(counter)}. That is `,
    h('b', {}, `${part < 0.01 ? 'less than 0.01' : part.toFixed(2)} %`),
    ` of one processor over the ${time(length)}, and ${bytes(Math.round(meta.bytes / Math.max(length / 1e9, 1e-3)))} of memory traffic per second.`,
  );
}

/** @param {any} meta @param {any} app */
function slicesOf(meta, app) {
  const {rows, more} = meta.slices;
  if (rows.length === 0) return h('p', {class: 'dim'}, 'No durations were recorded.');
  const most = rows[0][4] || 1;
  const make = (/** @type {any[][]} */ shownRows) =>
    table(
      'Top self times',
      ['name', 'category', 'self', 'share', 'total', 'count', 'p50', 'p95', 'max'],
      2,
      shownRows.map(([category, name, n, total, own, , p50, p95, max]) => [
        h('button', {class: 'link', onclick: () => app.find(name)}, shown(name, 100) || '(no name)'),
        shown(category, 60),
        time(own),
        bar(own / most, name),
        time(total),
        count(n),
        p50 === null ? '–' : time(p50),
        p95 === null ? '–' : time(p95),
        n ? time(max) : '–',
      ]),
    );
  return h(
    'div',
    {},
    expandable(rows, make),
    more > 0 && h('p', {class: 'note'}, `${count(more)} further names are in the timeline only.`),
  );
}

/** @param {any} meta @param {any} app */
function waitsOf(meta, app) {
  const thread = (/** @type {number} */ number) => app.model.whereOfThread(number);
  const show = (/** @type {number} */ from, /** @type {number} */ length, /** @type {number} */ of) =>
    h('button', {class: 'link', onclick: () => app.showThread(of, ...around(from, length))}, time(from));
  const [n, sum] = meta.waited;
  const parts = [];
  if (meta.ready.length > 0) {
    parts.push(
      h('h3', {}, `For a processor: ready, but not running (${quantity(n, 'time')}, ${time(sum / n)} on average)`),
      table(
        'Longest waits for a processor',
        ['thread', 'at', 'waited'],
        2,
        meta.ready
          .slice(0, 6)
          .map((/** @type {any[]} */ [length, from, of]) => [thread(of), show(from, length, of), time(length)]),
      ),
    );
  }
  if (meta.flows.length > 0) {
    parts.push(
      h('h3', {}, 'From thread to thread: along flows'),
      table(
        'Longest waits along flows',
        ['flow', 'from', 'to', 'at', 'took'],
        4,
        meta.flows
          .slice(0, 6)
          .map((/** @type {any[]} */ [length, from, of, [source, name]]) => [
            shown(name, 60),
            thread(source),
            thread(of),
            show(from, length, of),
            time(length),
          ]),
      ),
    );
  }
  const operations = [...meta.operations.rows].sort((a, b) => b[8] - a[8]).slice(0, 6);
  if (operations.length > 0) {
    parts.push(
      h('h3', {}, 'Asynchronous operations'),
      table(
        'Longest operations',
        ['operation', 'count', 'p50', 'p95', 'max'],
        1,
        operations.map(([, name, n, , , , p50, p95, max]) => [
          h('button', {class: 'link', onclick: () => app.find(name)}, shown(name, 80) || '(no name)'),
          count(n),
          p50 === null ? '–' : time(p50),
          p95 === null ? '–' : time(p95),
          n ? time(max) : '–',
        ]),
      ),
    );
  }
  return parts.length > 0
    ? h('div', {class: 'scroll', tabindex: 0}, ...parts)
    : h(
        'p',
        {class: 'dim'},
        'No flows and no scheduler events were recorded. Record with ',
        h('code', {}, '--categories kernel:sched,…'),
        ' to see how long threads wait for a processor.',
      );
}

/** @param {any} meta */
function countersOf(meta) {
  const {rows} = meta.counters;
  const make = (/** @type {any[][]} */ shownRows) =>
    table(
      'Counters',
      ['counter', 'process', 'min', 'mean', 'max', 'last', 'values'],
      2,
      shownRows.map(([process, , name, id, series, n, , last, min, max, mean]) => [
        shown(`${name}${id === '0' ? '' : ` #${id}`}${series && series !== name ? ` · ${series}` : ''}`, 80),
        shown(process, 60),
        short(min),
        short(mean),
        short(max),
        short(last),
        count(n),
      ]),
    );
  return expandable(rows, make);
}

/** @param {any} meta */
function checksOf(meta) {
  const line = (/** @type {any[]} */ [kind, n, text]) =>
    h('li', {}, h('b', {}, kind), ` ${count(n)}×`, text && h('span', {class: 'dim'}, ` — ${shown(text, 200)}`));
  if (meta.problems.length + meta.remarks.length === 0)
    return h('p', {class: 'good'}, '✓ trace check finds no problem.');
  return h('ul', {class: 'problems'}, ...meta.problems.map(line), ...meta.remarks.map(line));
}

/** What the page does not have. @param {any} meta */
function limitsOf(meta) {
  const texts = [];
  if (meta.is_part)
    texts.push('The page has what was selected of the trace. Losses, size and duration are those of the whole trace.');
  if (meta.dropped_flows > 0) texts.push(`${count(meta.dropped_flows)} flow events beyond a million are not drawn.`);
  if (meta.dropped_names > 0) texts.push(`${count(meta.dropped_names)} events have names beyond those that are kept.`);
  if (meta.folded)
    texts.push(
      `This trace has more slices than are drawn one by one: those shorter than ${time(meta.folded.cut)} (${count(meta.folded.count)}) are drawn together where they are. All sums are of all slices.`,
    );
  return texts.length > 0 && h('p', {class: 'banner'}, texts.join(' '));
}

/** All of it. @param {any} app */
export function summaryOf(app) {
  const {meta} = app.model;
  const counters = meta.counters.rows.length > 0 && card('Counters', 'The range of each counter.', countersOf(meta));
  return [
    lossesOf(meta, app),
    limitsOf(meta),
    tilesOf(meta, app),
    meta.events === 0 && h('p', {class: 'banner'}, 'There are no events in this trace.'),
    h(
      'div',
      {class: 'cards'},
      h(
        'div',
        {class: 'wide'},
        card(
          'Top self times',
          'Time in slices of a name without the slices inside them. A name leads to its slices.',
          slicesOf(meta, app),
        ),
      ),
      h(
        'div',
        {class: 'half'},
        card('Longest waits', '', waitsOf(meta, app)),
        card('Checks', '', checksOf(meta)),
        card('Cost of tracing', '', costOf(meta)),
      ),
      h('div', {class: 'half'}, counters || card('Counters', '', h('p', {class: 'dim'}, 'No counters were recorded.'))),
    ),
    meta.session.command_line &&
      h(
        'p',
        {class: 'note'},
        'Recorded by ',
        h('code', {}, shown(meta.session.command_line, 300)),
        meta.session.categories && ` · categories ${shown(meta.session.categories, 200)}`,
      ),
  ];
}
