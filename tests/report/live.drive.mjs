// Uses the page of a running recording as a person would, in a headless browser, and prints what the page
// says.
//
//   node live.drive.mjs ADDRESS [SCREENSHOT_DIR]
//
// Prints `following` when the page has followed the recording, was paused and follows it again; then
// waits for the end of the recording, and prints a JSON object. The modules playwright-core and axe-core
// are looked for in the working directory; the browser is `chromium` or $CHROMIUM.
import {join} from 'node:path';
import {drawn, judge, launch, watch} from './browser.mjs';

const [address, shots] = process.argv.slice(2);
if (address === undefined) {
  console.error('usage: live.drive.mjs ADDRESS [SCREENSHOT_DIR]');
  process.exit(2);
}

const browser = await launch();
const found = {errors: [], requests: [], accessibility: []};
try {
  const page = await browser.newPage({viewport: {width: 1280, height: 800}});
  watch(page, found, (url) => url === address || url === `${address}events`);
  const shot = (what) => shots && page.screenshot({path: join(shots, `${what}.png`)});
  const state = () => page.evaluate(() => {
    const {view, live} = globalThis.traceReport;
    return {from: view.from, to: view.to, now: live.now};
  });
  /** Waits until the recording has gone on. */
  const later = (now) => page.waitForFunction((now) => globalThis.traceReport.live.now > now, now);

  await page.goto(address);
  await page.waitForSelector('body[data-ready]');
  await page.waitForSelector("table[aria-label='Durations since the beginning']");
  found.title = await page.title();
  found.state = await page.locator('#state').textContent();
  await judge(page, found, 'overview');
  await shot('live-overview');

  // The right edge is the newest moment, until the page is paused by a key, a button, or by dragging.
  await page.getByRole('tab', {name: 'Timeline'}).click();
  await drawn(page);
  await judge(page, found, 'timeline');
  found.followed = [await state()];
  await later(found.followed[0].now + 3e8);
  found.followed.push(await state());
  await page.locator('#scroller').focus();
  const lanes = await page.locator('#lanes').boundingBox();
  const pauses = {
    key: () => page.keyboard.press(' '),
    button: () => page.locator('#pause').click(),
    drag: async () => {
      await page.mouse.move(lanes.x + 300, lanes.y + 10);
      await page.mouse.down();
      await page.mouse.move(lanes.x + 340, lanes.y + 10, {steps: 3});
      await page.mouse.up();
    },
  };
  found.paused = {};
  for (const [name, pause] of Object.entries(pauses)) {
    await pause();
    const before = await state();
    await later(before.now + 3e8);
    const after = await state();
    found.paused[name] = {before, after, button: await page.locator('#pause').textContent()};
    await (name === 'button' ? page.locator('#pause').click() : page.keyboard.press(' '));
    const again = await state();
    await later(again.now + 3e8);
    found.paused[name].again = [again, await state()];
  }
  await shot('live-timeline');
  console.log('following');

  await page.waitForSelector('body[data-ended]', {timeout: 60000});
  found.ended = await page.locator('#state').textContent();
  // It stays usable: the longest slice is found, clicked and described.
  Object.assign(found, await page.evaluate(() => {
    const {model} = globalThis.traceReport;
    const counts = [0, 0, 0, 0, 0, 0, 0, 0];
    const slices = new Map();
    let open = 0;
    for (const track of model.tracks) {
      counts[track.kind] += track.data.n;
      counts[6] += track.folded?.data.counts.reduce((sum, count) => sum + count, 0) ?? 0;
      if (track.kind > 1) continue;
      for (let i = 0; i < track.data.n; i++) {
        if (track.data.end[i] === Infinity) open++;
        const key = [model.categoryOf(track.data.what[i]), model.nameOf(track.data.what[i])].join('\n');
        const sum = slices.get(key) ?? [0, 0];
        sum[0]++;
        sum[1] += track.data.end[i] - track.data.ts[i];
        slices.set(key, sum);
      }
    }
    return {
      counts, open, totals: model.totals, table: model.table, missed: model.missed, losses: model.meta.losses.intervals,
      slices: [...slices].map(([key, sum]) => [...key.split('\n'), ...sum]),
      sums: model.sums.map(([what, ...sum]) => [model.categoryOf(what), model.nameOf(what), ...sum]),
    };
  }));
  await page.locator('#scroller').focus();
  await page.keyboard.press('0');
  await drawn(page);
  await shot('live-ended');
  const [category, name] = found.sums[0];
  await page.locator('#search').fill(name);
  await page.locator('#search').press('Enter');
  await page.waitForSelector('#details:not([hidden])');
  found.details = await page.locator('#details').innerText();
  found.selected = {category, name, sql: await page.locator('#details .sql').textContent()};
  await page.getByRole('tab', {name: 'Overview'}).click();
  found.overview = await page.locator('#overview').innerText();
  await judge(page, found, 'ended');
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
