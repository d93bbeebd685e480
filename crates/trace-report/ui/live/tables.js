// The first screen of a recording that is still running: what it does now, and what it has done so far.
import {card, h, table} from '../element.js';
import {count, short, shown, time} from '../text.js';

/** Rows of a table, at most. */
const SHOWN_ROWS = 30;

const rate = (/** @type {number} */ value) => short(value < 10 ? Number(value.toFixed(1)) : Math.round(value));

/** @param {string} value @param {string} name @param {string} [note] */
function tile(value, name, note) {
  return h(
    'div',
    {class: 'tile'},
    h('span', {class: 'value'}, value),
    h('span', {class: 'name'}, name),
    note && h('span', {class: 'dim'}, note),
  );
}

/** Rows, and how many there are beside them. @param {any[]} rows @param {number} more
 * @param {(rows: any[]) => HTMLElement} make */
function first(rows, more, make) {
  const hidden = Math.max(rows.length - SHOWN_ROWS, 0) + more;
  return h(
    'div',
    {class: 'scroll', tabindex: 0},
    make(rows.slice(0, SHOWN_ROWS)),
    hidden > 0 && h('p', {class: 'note'}, `… ${count(hidden)} more`),
  );
}

/** A name that leads to its slices. @param {any} app @param {string} name */
const link = (app, name) =>
  h('button', {class: 'link', 'data-name': name, onclick: () => app.find(name)}, shown(name, 100) || '(no name)');

/** @param {any} app @param {any} now */
function lossesOf(app, {programs, programs_left_out: leftOut, skipped_updates: skipped}) {
  const sum = (/** @type {string} */ of) =>
    programs.reduce((/** @type {number} */ sum, /** @type {any} */ program) => sum + program[of], 0);
  const {totals, missed} = app.model;
  const texts = [
    sum('lost') > 0 && `${count(sum('lost'))} records found no room in their buffers and are lost.`,
    sum('missed') > 0 && `${count(sum('missed'))} records were not seen here in time. The archive has them.`,
    skipped > 0 && `${count(skipped)} updates were skipped because this command was too slow.`,
    missed > 0 && `This page was too slow for ${count(missed)} updates. Its timeline is hatched there.`,
    leftOut > 0 && `${count(leftOut)} programs are not shown.`,
    totals.undrawn > 0 && `${count(totals.undrawn)} things beyond 10 000 tracks are only counted.`,
  ].filter(Boolean);
  if (texts.length === 0) return h('p', {class: 'banner good'}, '✓ Nothing is missing so far.');
  return h('section', {class: 'banner bad'}, h('ul', {}, ...texts.map((text) => h('li', {}, text))));
}

/** @param {any} now */
function programsOf({programs}) {
  const busiest = [...programs].sort((a, b) => b.events_per_second - a.events_per_second || a.id - b.id);
  return first(busiest, 0, (rows) =>
    table(
      'Programs',
      ['program', 'pid', 'records', 'events/s', 'buffer', 'lost', 'missed'],
      1,
      rows.map((of) => [
        shown(of.name, 80),
        String(of.pid),
        count(of.records),
        rate(of.events_per_second),
        of.ended ? 'ended' : of.damaged ? 'damaged' : `${Math.round(of.fill_percent)} %`,
        count(of.lost),
        count(of.missed),
      ]),
    ),
  );
}

/** @param {any} app @param {any} now */
function durationsOf(app, {durations, skipped}) {
  if (durations.length === 0) return h('p', {class: 'dim'}, 'No duration has ended.');
  return first(durations, skipped.durations, (rows) =>
    table(
      'Durations of the last seconds',
      ['name', 'category', 'program', 'count', 'per second', 'total', 'p50', 'p99', 'max'],
      3,
      rows.map((of) => [
        link(app, of.name),
        shown(of.category, 60),
        shown(of.program ?? '', 60),
        count(of.count),
        rate(of.per_second),
        time(of.total_ns),
        of.p50_ns === null ? '–' : time(of.p50_ns),
        of.p99_ns === null ? '–' : time(of.p99_ns),
        time(of.max_ns),
      ]),
    ),
  );
}

/** @param {any} app */
function sumsOfAll(app) {
  const {model} = app;
  if (model.sums.length === 0) return h('p', {class: 'dim'}, 'No duration has ended.');
  return first(model.sums, model.moreSums, (rows) =>
    table(
      'Durations since the beginning',
      ['name', 'category', 'count', 'total', 'max'],
      2,
      rows.map(([what, n, total, longest]) => [
        link(app, model.nameOf(what)),
        shown(model.categoryOf(what), 60),
        count(n),
        time(total),
        time(longest),
      ]),
    ),
  );
}

/** @param {any} now */
function countersOf({counters, skipped}) {
  if (counters.length === 0) return h('p', {class: 'dim'}, 'No counter has a value.');
  return first(counters, 0, (rows) =>
    table(
      'Counters now',
      ['counter', 'program', 'value'],
      2,
      rows.map((of) => [
        shown(
          `${of.name}${of.id === 0 ? '' : ` #${of.id}`}${of.value && of.value !== of.name ? ` · ${of.value}` : ''}`,
          80,
        ),
        shown(of.program ?? '', 60),
        of.last === null ? '–' : short(of.last),
      ]),
    ),
  );
}

/** All of it. @param {any} app */
export function tablesOf(app) {
  const {model} = app;
  const now = model.table;
  if (!now) return [h('p', {class: 'banner'}, 'Waiting for the first records…')];
  const {totals} = model;
  const events = now.programs.reduce(
    (/** @type {number} */ sum, /** @type {any} */ of) => sum + of.events_per_second,
    0,
  );
  const seconds = Math.max(now.window_ns, 0) / 1e9;
  const name = (/** @type {string} */ of) => `${count(totals[of] ?? 0)} ${of}`;
  return [
    lossesOf(app, now),
    h(
      'div',
      {class: 'tiles'},
      tile(rate(events), 'events per second', `of the last ${seconds.toFixed(1)} s`),
      tile(count((totals.slices ?? 0) + (totals.operations ?? 0)), 'durations', name('operations')),
      tile(count(totals.instants ?? 0), 'instants', `${name('flows')}, ${name('logs')}`),
      tile(count(totals.counters ?? 0), 'values of counters'),
      tile(time(Math.max(model.now, 0)), 'recorded', `${now.buffering_mode}, ${now.state}`),
    ),
    h(
      'div',
      {class: 'cards'},
      h('div', {class: 'wide'}, card('Programs', '', programsOf(now))),
      h(
        'div',
        {class: 'wide'},
        card('Durations of the last seconds', 'Those with most time first.', durationsOf(app, now)),
      ),
      h('div', {class: 'half'}, card('Durations since the beginning', '', sumsOfAll(app))),
      h('div', {class: 'half'}, card('Counters', 'The last value of each.', countersOf(now))),
    ),
  ];
}
