// Opens a file with speedscope in a headless browser, as its own command does, and prints what it has read:
// the document that the viewer saves, and what it has reported on the way.
//
//   node speedscope.mjs PACKAGE FILE
//
// The module playwright-core is looked for in the working directory; the browser is `chromium` or $CHROMIUM.
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {basename, join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';

const [folder, file] = process.argv.slice(2);
if (!file) {
  console.error('usage: speedscope.mjs PACKAGE FILE');
  process.exit(2);
}
const require = createRequire(join(process.cwd(), 'package.json'));
const {chromium} = require('playwright-core');
const scratch = mkdtempSync(join(tmpdir(), 'speedscope-'));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  // A page of the disk may load scripts, but no files: the trace is in a script.
  const content = readFileSync(file).toString('base64');
  const loader = join(scratch, 'load.js');
  const call = [basename(file), content].map((text) => JSON.stringify(text)).join(', ');
  writeFileSync(loader, `speedscope.loadFileFromBase64(${call})`);
  const tab = await browser.newPage();
  const errors = [];
  tab.on('pageerror', (error) => errors.push(String(error)));
  tab.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  tab.on('dialog', (dialog) => (errors.push(dialog.message()), dialog.dismiss()));
  const page = pathToFileURL(resolve(folder, 'dist/release/index.html'));
  await tab.goto(`${page.href}#localProfilePath=${loader}`);
  await tab.waitForFunction(() => document.title !== 'speedscope', null, {timeout: 60000});
  const title = await tab.title();
  const saving = tab.waitForEvent('download', {timeout: 60000});
  await tab.keyboard.press('Control+s');
  const saved = readFileSync(await (await saving).path(), 'utf8');
  console.log(JSON.stringify({title, errors, saved: JSON.parse(saved)}));
} finally {
  await browser.close();
  rmSync(scratch, {recursive: true});
}
