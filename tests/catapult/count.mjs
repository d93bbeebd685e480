// Has Catapult's trace viewer import a trace, in a headless browser, and prints what it has found as a JSON
// object.
//
//   node count.mjs VIEWER_HTML TRACE
//
// The modules playwright-core and webcomponents.js are looked for in the working directory; the browser is
// `chromium` or $CHROMIUM. The viewer is older than custom elements, which webcomponents.js makes up for.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [viewer, trace] = process.argv.slice(2);
if (!trace) {
  console.error('usage: count.mjs VIEWER_HTML TRACE');
  process.exit(2);
}
const require = createRequire(join(process.cwd(), 'package.json'));
const {chromium} = require('playwright-core');
const polyfill = readFileSync(require.resolve('webcomponents.js/webcomponents.min.js'), 'utf8').replaceAll('</script', '<\\/script');
const page = `<!doctype html><meta charset=utf-8><script>${polyfill}</script>${readFileSync(viewer, 'utf8')}`;

// Runs in the page.
const count = async () => {
  const text = await (await fetch('/trace')).text();
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
  const found = {error, warnings: model.importWarnings.map((warning) => warning.message), slices: {}, operations: {}, counters: {}, samples: {}};
  const add = (table, name, number) => (table[name] = (table[name] ?? 0) + number);
  const operation = (slice) => {
    add(found.operations, slice.title, 1);
    (slice.subSlices ?? []).forEach(operation);
  };
  for (const process of Object.values(model.processes)) {
    for (const thread of Object.values(process.threads)) {
      thread.sliceGroup.slices.forEach((slice) => add(found.slices, slice.title, 1));
      thread.asyncSliceGroup.slices.forEach(operation);
    }
    for (const counter of Object.values(process.counters)) {
      counter.series.forEach((series) => add(found.counters, counter.name, series.samples.length));
    }
  }
  // How many samples have a function in their stack. The viewer adds where a script has it, which is unknown.
  for (const sample of model.samples) {
    const names = sample.userFriendlyStack.map((name) => name.replace(/ url: unknown$/, ''));
    new Set(names).forEach((name) => add(found.samples, name, 1));
  }
  found.flows = model.flowEvents.length;
  found.cpuSlices = Object.values(model.kernel.cpus).reduce((sum, cpu) => sum + cpu.slices.length, 0);
  return found;
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const tab = await browser.newPage();
  const answer = (contentType, body) => (route) => route.fulfill({contentType, body});
  await tab.route('http://viewer.test/', answer('text/html; charset=utf-8', page));
  await tab.route('http://viewer.test/trace', answer('application/json', readFileSync(trace)));
  await tab.goto('http://viewer.test/');
  await tab.waitForFunction(() => window.tr?.importer?.Import, null, {timeout: 60000});
  console.log(JSON.stringify(await tab.evaluate(count)));
} finally {
  await browser.close();
}
