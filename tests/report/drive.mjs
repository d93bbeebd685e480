// Uses the page of a trace as a person would, in a headless browser, and prints what the page says as a JSON
// object.
//
//   node drive.mjs [--without-axe] PAGE NAME [SCREENSHOT_DIR]
//
// NAME is what is searched. Without axe, which takes half of the time, accessibility is not judged. The
// modules playwright-core and axe-core are looked for in the working directory; the browser is `chromium` or
// $CHROMIUM.
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {drawn, judge, launch, watch} from './browser.mjs';

const isJudged = process.argv[2] !== '--without-axe';
const [file, name, shots] = process.argv.slice(isJudged ? 2 : 3);
if (name === undefined) {
  console.error('usage: drive.mjs [--without-axe] PAGE NAME [SCREENSHOT_DIR]');
  process.exit(2);
}

const browser = await launch();
const found = {errors: [], requests: [], accessibility: []};
try {
  const page = await browser.newPage({viewport: {width: 1280, height: 800}});
  page.on('dialog', (dialog) => {
    found.errors.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const own = pathToFileURL(file).href;
  watch(page, found, (url) => url.split('#')[0] === own);
  const shot = (what) => shots && page.screenshot({path: join(shots, `${what}.png`)});
  const judged = async (what) => isJudged && judge(page, found, what);
  const view = () => page.evaluate(() => {
    const {from, to} = globalThis.traceReport.view;
    return [from, to];
  });

  await page.goto(own);
  await page.waitForSelector('body[data-ready]', {timeout: 60000});
  found.title = await page.title();
  found.overview = await page.locator('#overview').innerText();
  found.top = await page.locator('table[aria-label="Top self times"] tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  await judged('overview');
  await shot('overview');

  await page.getByRole('tab', {name: 'Timeline'}).click();
  await drawn(page);
  await page.waitForFunction(() => globalThis.traceReport.drawing.placed.every(({lane}) => [lane.main, lane.marks, lane.states].every((track) => !track || track.data)));
  await drawn(page);
  await judged('timeline');
  await shot('timeline');
  const lanes = await page.locator('#lanes').boundingBox();
  const ruler = await page.locator('#ruler').boundingBox();
  found.whole = await view();

  // Zoom with the wheel, and pan by dragging.
  await page.mouse.move(lanes.x + lanes.width / 2, lanes.y + Math.min(lanes.height / 2, 60));
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -400);
  await page.keyboard.up('Control');
  await drawn(page);
  found.zoomed = await view();
  await page.mouse.down();
  await page.mouse.move(lanes.x + lanes.width / 2 - 100, lanes.y + Math.min(lanes.height / 2, 60), {steps: 4});
  await page.mouse.up();
  await drawn(page);
  found.panned = await view();
  await page.keyboard.press('Escape');
  await page.locator('#scroller').focus();
  await page.keyboard.press('d');
  await drawn(page);
  found.keyed = await view();

  // Search, and go through what is found.
  await page.locator('#search').fill(name);
  await page.locator('#search').press('Enter');
  await page.waitForFunction(() => / of |nothing/.test(document.getElementById('found').textContent));
  found.search = await page.locator('#found').textContent();
  await page.locator('#search').press('Enter');
  await page.waitForFunction((before) => document.getElementById('found').textContent !== before || !/of [^1]/.test(before), found.search);
  await drawn(page);
  found.next = await page.locator('#found').textContent();
  const isFound = await page.evaluate(() => globalThis.traceReport.view.selected !== null);
  if (isFound) {
    found.details = await page.locator('#details').innerText();
    found.selectedSql = await page.locator('#details .sql').textContent();
    await judged('details');
    await shot('details');
    // Click at what is selected, after the selection was cleared.
    const spot = await page.evaluate(() => {
      const {drawing, view, model} = globalThis.traceReport;
      const {track, i} = view.selected;
      const {lane, y} = drawing.placed.find(({lane}) => lane.main === track || lane.marks === track);
      const isMark = lane.marks === track;
      const {ts, end, depth} = track.data;
      const left = Math.max(drawing.x(ts[i]), 0);
      const right = Math.min(drawing.x(Math.min(end[i], model.length)), drawing.width);
      const states = lane.states ? 8 : 0;
      return [isMark ? left : (left + right) / 2, y + 4 + states + (isMark ? 5 : (lane.marks ? 12 : 0) + (depth?.[i] ?? 0) * 18 + 9), ts[i]];
    });
    await page.locator('#search').fill('');
    await page.waitForFunction(() => globalThis.traceReport.view.search.text === '');
    await page.locator('#scroller').focus();
    await page.keyboard.press('Escape');
    await drawn(page);
    const box = await page.locator('#lanes').boundingBox();
    await page.mouse.move(box.x + spot[0], box.y + spot[1]);
    await drawn(page);
    found.tip = await page.locator('#tip').innerText();
    await page.mouse.click(box.x + spot[0], box.y + spot[1]);
    await page.waitForSelector('#details:not([hidden])');
    found.clicked = await page.locator('#details h2').innerText();
    await page.waitForTimeout(50);
    found.hash = await page.evaluate(() => {
      globalThis.traceReport.save();
      return location.hash;
    });
  }

  // Pin the track of the selection with a key, hide another one by its button, and show it again.
  if (isFound && found.clicked) {
    const heads = () => page.locator('#heads .head').evaluateAll((all) => all.map((head) => ({
      key: head.dataset.key, y: head.getBoundingClientRect().y, isPinned: head.querySelector('.pin')?.getAttribute('aria-pressed') === 'true',
    })));
    const hash = () => page.evaluate(() => (globalThis.traceReport.save(), location.hash));
    const own = await page.evaluate(() => {
      const app = globalThis.traceReport;
      return app.layout.laneOf(app.view.selected.track).key;
    });
    await page.locator('#scroller').focus();
    await page.keyboard.press('p');
    await drawn(page);
    const pinned = (await heads()).filter(({isPinned}) => isPinned);
    found.pinned = {own, keys: pinned.map(({key}) => key), top: pinned[0]?.y - lanes.y, hash: await hash()};
    await page.keyboard.press('p');
    await drawn(page);
    found.pinned.left = (await heads()).filter(({isPinned}) => isPinned).length;
    const before = (await heads()).map(({key}) => key);
    // One that is in view as a whole: the first may be below the ruler.
    const inView = await page.locator('#heads .head:not(.group)').evaluateAll((all, top) =>
      all.findIndex((head) => head.getBoundingClientRect().y >= top), lanes.y);
    await page.locator('#heads .head:not(.group)').nth(inView).locator('.hide').click({force: true});
    await drawn(page);
    found.hidden = {
      before, after: (await heads()).map(({key}) => key), hash: await hash(), button: await page.locator('#hidden').innerText(),
    };
    await page.locator('#hidden').click();
    await drawn(page);
    found.hidden.again = (await heads()).map(({key}) => key);
    found.hidden.isButtonLeft = await page.locator('#hidden').isVisible();
  }

  // Two fingers that move apart zoom in around the middle between them, and together zoom out.
  await page.locator('#scroller').focus();
  await page.keyboard.press('0');
  await drawn(page);
  const touch = await page.context().newCDPSession(page);
  const fingers = async (type, apart) => {
    const [x, y] = [lanes.x + lanes.width / 4, lanes.y + Math.min(lanes.height / 2, 60)];
    const touchPoints = type === 'touchEnd' ? [] : [{x: x - apart, y, id: 0}, {x: x + apart, y, id: 1}];
    await touch.send('Input.dispatchTouchEvent', {type, touchPoints});
    await drawn(page);
  };
  await fingers('touchStart', 40);
  for (let apart = 50; apart <= 160; apart += 10) await fingers('touchMove', apart);
  found.pinched = await view();
  for (let apart = 150; apart >= 40; apart -= 10) await fingers('touchMove', apart);
  found.pinchedBack = await view();
  await fingers('touchEnd', 0);

  // Select everything in the ruler.
  await page.locator('#scroller').focus();
  await page.keyboard.press('0');
  await drawn(page);
  await page.mouse.move(ruler.x, ruler.y + 10);
  await page.mouse.down();
  await page.mouse.move(ruler.x + ruler.width + 50, ruler.y + 10, {steps: 5});
  await page.mouse.up();
  await page.waitForFunction(() => !document.getElementById('details').innerText.includes('Counting'));
  found.range = await page.locator('#details header').innerText();
  found.rows = await page.locator('table[aria-label="Slices in the range"] tbody tr').evaluateAll((rows) =>
    rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  found.sql = await page.locator('#details .sql').textContent();
  // The button copies the question as a command, which is taken from the clipboard.
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.locator('#details .question summary').click();
  const copy = page.locator('#details .question button');
  await copy.click();
  await page.waitForFunction(() => document.querySelector('#details .question button').textContent !== 'Copy SQL');
  found.copied = {button: await copy.textContent(), command: await page.evaluate(() => navigator.clipboard.readText())};
  await judged('range');
  await shot('range');

  // What the page has, after everything was decoded.
  Object.assign(found, await page.evaluate(async () => {
    const {model} = globalThis.traceReport;
    await model.loadAll(() => true);
    await model.loadFlows();
    const counts = [0, 0, 0, 0, 0, 0, 0, 0];
    const folded = [0, 0];
    const states = {};
    const slices = new Map();
    const values = new Map();
    let args = 0;
    for (const track of model.tracks) {
      counts[track.kind] += track.data.n;
      if (track.kind === 6) {
        folded[0] += track.data.counts.reduce((a, b) => a + b, 0);
        folded[1] += track.data.sums.reduce((a, b) => a + b, 0);
      }
      if (track.kind === 5) {
        const key = [model.nameOf(track.what), track.series].join('\n');
        values.set(key, (values.get(key) ?? 0) + track.data.values.reduce((sum, value) => sum + value, 0));
      }
      if (track.kind === 7) {
        for (let i = 0; i < track.data.n; i++) {
          const state = (states[model.nameOf(track.data.what[i])] ??= [0, 0]);
          state[0]++;
          if (track.data.end[i] !== Infinity) state[1] += track.data.end[i] - track.data.ts[i];
        }
      }
      if (track.kind > 1) continue;
      for (let i = 0; i < track.data.n; i++) {
        const key = [model.categoryOf(track.data.what[i]), model.nameOf(track.data.what[i])].join('\n');
        const sum = slices.get(key) ?? [0, 0, 0];
        sum[0]++;
        if (track.data.end[i] !== Infinity) sum[1] += track.data.end[i] - track.data.ts[i];
        sum[2] = Math.max(sum[2], track.data.depth[i]);
        slices.set(key, sum);
      }
      for (let i = 0; i < Math.min(track.data.n, 50); i++) args += model.argumentsText(track.data, i).length;
    }
    return {
      counts, folded, states, folding: model.meta.folded, flows: model.flows.length, base: String(model.base), length: model.length, args,
      slices: [...slices].map(([key, sum]) => [...key.split('\n'), ...sum]),
      counters: [...values].map(([key, sum]) => [...key.split('\n'), sum]),
      reported: model.meta.slices.rows,
    };
  }));

  // Zoom and pan through everything, and look at every picture.
  await page.keyboard.press('Escape');
  found.frames = await page.evaluate(async () => {
    const app = globalThis.traceReport;
    const frames = [];
    const next = () => new Promise((resolve) => requestAnimationFrame(() => resolve()));
    for (let step = 0; step < 60; step++) {
      if (step < 20) app.zoom(0.7, 0.4);
      else if (step < 40) app.pan(0.05);
      else app.zoom(1 / 0.7, 0.5);
      app.draw();
      frames.push([app.frame.rectangles, app.frame.ms]);
      await next();
    }
    return {rectangles: Math.max(...frames.map(([count]) => count)), times: frames.map(([, ms]) => ms).sort((a, b) => a - b)};
  });

  // The same address shows the same again, in the dark.
  await page.emulateMedia({colorScheme: 'dark'});
  await drawn(page);
  await judged('dark');
  if (found.hash) {
    await page.goto('about:blank');
    await page.goto(own + found.hash);
    await page.waitForSelector('#details:not([hidden])');
    found.again = await page.locator('#details h2').innerText();
    await drawn(page);
    await shot('dark');
  }
  await page.getByRole('tab', {name: 'Overview'}).click();
  await judged('dark overview');
  await page.keyboard.press('?');
  await judged('help');
  await page.keyboard.press('Escape');
  await page.setViewportSize({width: 480, height: 800});
  await judged('narrow');
  await shot('narrow');
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
