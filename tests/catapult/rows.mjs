// Has Catapult's trace viewer import traces, in a headless browser, and prints what it has found in each of
// them as a line of JSON.
//
//   node rows.mjs VIEWER_HTML < TRACES
//
// TRACES has the path of a trace on each line. Many of them cost one start of the browser. Modules and
// browser are found as by count.mjs.
//
// Times are nanoseconds; a length is null if the viewer found no end. A slice is [process, thread, category,
// name, begin, length, name of its parent, name of the thread]; an operation [process, category, name, begin,
// length]; a sample of a counter [process, name, series, time, value]; a flow [name and begin of the slice
// that it leaves, those of the slice that it enters].
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [viewer] = process.argv.slice(2);
if (!viewer) {
  console.error('usage: rows.mjs VIEWER_HTML < TRACES');
  process.exit(2);
}
const require = createRequire(join(process.cwd(), 'package.json'));
const {chromium} = require('playwright-core');
const polyfill = readFileSync(require.resolve('webcomponents.js/webcomponents.min.js'), 'utf8').replaceAll('</script', '<\\/script');
const page = `<!doctype html><meta charset=utf-8><script>${polyfill}</script>${readFileSync(viewer, 'utf8')}`;

// Runs in the page.
const rows = (text) => {
  const model = new tr.Model();
  const options = new tr.importer.ImportOptions();
  options.shiftWorldToZero = false;
  options.showImportWarnings = false;
  let error = null;
  try {
    new tr.importer.Import(model, options).importTraces([text]);
  } catch (thrown) {
    error = String(thrown);
  }
  const found = {error, warnings: model.importWarnings.map((warning) => warning.message), slices: [], operations: [], counters: [], flows: []};
  const ns = (ms) => Math.round(ms * 1e6);
  const length = (slice) => (slice.didNotFinish ? null : ns(slice.start + slice.duration) - ns(slice.start));
  // The viewer makes up an end for what has none, and a begin, which is left out here, for an end without
  // one.
  const operation = (process) => (slice) => {
    const {category, title, start, error} = slice;
    if (!error?.includes('no matching BEGIN')) {
      const foundLength = error?.includes('no matching END') ? null : length(slice);
      found.operations.push([process.pid, category, title, ns(start), foundLength]);
    }
    (slice.subSlices ?? []).forEach(operation(process));
  };
  for (const process of Object.values(model.processes)) {
    for (const thread of Object.values(process.threads)) {
      for (const slice of thread.sliceGroup.slices) {
        const {category, title, start, parentSlice} = slice;
        found.slices.push([process.pid, thread.tid, category, title, ns(start), length(slice), parentSlice?.title ?? null, thread.name ?? null]);
      }
      thread.asyncSliceGroup.slices.forEach(operation(process));
    }
    for (const counter of Object.values(process.counters)) {
      for (const series of counter.series) {
        for (const sample of series.samples) {
          found.counters.push([process.pid, counter.name, series.name, ns(sample.timestamp), sample.value]);
        }
      }
    }
  }
  const end = (slice) => (slice ? [slice.title, ns(slice.start)] : [null, null]);
  found.flows = model.flowEvents.map((flow) => [...end(flow.startSlice), ...end(flow.endSlice)]);
  return found;
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const tab = await browser.newPage();
  await tab.route('http://viewer.test/', (route) => route.fulfill({contentType: 'text/html; charset=utf-8', body: page}));
  await tab.goto('http://viewer.test/');
  await tab.waitForFunction(() => window.tr?.importer?.Import, null, {timeout: 60000});
  for (const trace of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
    console.log(JSON.stringify(await tab.evaluate(rows, readFileSync(trace, 'utf8'))));
  }
} finally {
  await browser.close();
}
