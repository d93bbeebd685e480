// Opens a page of the Perfetto UI in a headless browser, waits until it shows a trace, and prints what it
// has found as a JSON object: the rows of a query of the page's own engine, requests to other origins,
// what the page's policy has refused, and what a page of another origin gets that knows all addresses.
//
//   node open.mjs ADDRESS SQL
//
// The module playwright-core is looked for in the working directory; the browser is `chromium` or
// $CHROMIUM.
import {createRequire} from 'node:module';
import {join} from 'node:path';

const [address, sql] = process.argv.slice(2);
if (!sql) {
  console.error('usage: open.mjs ADDRESS SQL');
  process.exit(2);
}
const require = createRequire(join(process.cwd(), 'package.json'));
const {chromium} = require('playwright-core');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const tab = await browser.newPage();
  const [requests, refused] = [[], []];
  tab.on('request', (request) => requests.push(request.url()));
  // The browser reports refusals of the page's policy on the console.
  tab.on('console', (message) => message.text().includes('Content Security Policy') && refused.push(message.text()));
  await tab.goto(address);
  await tab.waitForFunction(() => window.app?.trace?.engine, null, {timeout: 120000});
  const rows = await tab.evaluate(async (sql) => {
    const result = await window.app.trace.engine.query(sql);
    // The engine's types of text and numbers.
    const rows = [];
    for (const row = result.iter({name: 'str', n: 0}); row.valid(); row.next()) rows.push({name: row.name, n: row.n});
    return rows;
  }, sql);
  const origin = new URL(address).origin;
  const outside = requests.filter((url) => /^https?:/.test(url) && new URL(url).origin !== origin);
  const other = await browser.newPage();
  await other.route('http://other.test/', (route) => route.fulfill({contentType: 'text/html', body: '<!doctype html>'}));
  await other.goto('http://other.test/');
  const trace = /url=([^&]*)/.exec(new URL(address).hash)[1];
  const gets = await other.evaluate(async ([trace, script]) => {
    const fetched = (options) => fetch(trace, options).then(() => 'got', () => 'nothing');
    const loaded = await new Promise((resolve) => {
      const element = document.createElement('script');
      [element.onload, element.onerror] = [() => resolve('got'), () => resolve('nothing')];
      element.src = script;
      document.head.append(element);
    });
    return {fetched: await fetched({}), opaque: await fetched({mode: 'no-cors'}), script: loaded};
  }, [trace, `${origin}/trace-view.js`]);
  console.log(JSON.stringify({rows, outside, refused, gets}));
} finally {
  await browser.close();
}
