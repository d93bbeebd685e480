// The headless browser of the scripts beside this file. The modules playwright-core and axe-core are looked
// for in the working directory; the browser is `chromium` or $CHROMIUM.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const require = createRequire(join(process.cwd(), 'package.json'));

/** A browser that does nothing of its own accord. */
export const launch = () =>
  require('playwright-core').chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
  });

/** Adds errors of a page, and its requests that are not allowed, to what is found. */
export function watch(page, found, isAllowed) {
  page.on('pageerror', (error) => found.errors.push(`${error}`));
  page.on('console', (message) => message.type() === 'error' && found.errors.push(message.text()));
  page.on('request', (request) => {
    const url = request.url();
    if (!isAllowed(url) && !url.startsWith('blob:')) found.requests.push(url.slice(0, 200));
  });
}

/** Adds what axe finds in a view. */
export async function judge(page, found, what) {
  await page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const violations = await page.evaluate(async () => (await globalThis.axe.run()).violations
    .map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')}`));
  found.accessibility.push(...violations.map((text) => `${what}: ${text}`));
}

/** Waits for a picture after the last change. */
export const drawn = (page) =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
