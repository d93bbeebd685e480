// Measures how old events are when the page of a running recording has drawn them, in a headless browser.
//
//   node live.age.mjs ADDRESS SECONDS
//
// Waits until events come, looks at the timeline for so long, and prints a line of JSON: how many
// pictures had new events, and the age of the oldest and of the newest event that was new in each of
// them, in milliseconds: median, 99 % and largest; milliseconds of the main thread for a picture, and how
// many updates the page missed. Modules as for live.drive.mjs.
import {launch} from './browser.mjs';

const [address, seconds] = process.argv.slice(2);
if (seconds === undefined) {
  console.error('usage: live.age.mjs ADDRESS SECONDS');
  process.exit(2);
}
const browser = await launch();
try {
  const page = await browser.newPage({viewport: {width: 1280, height: 800}});
  await page.goto(address);
  await page.waitForFunction(() => {
    const {totals} = globalThis.traceReport?.live ?? {};
    return totals && totals.slices + totals.instants + totals.counters > 0;
  });
  await page.getByRole('tab', {name: 'Timeline'}).click();
  // A second without what the page was behind when it came.
  await page.waitForTimeout(1000);
  const found = await page.evaluate(async (seconds) => {
    const app = globalThis.traceReport;
    const before = {...app.live.totals};
    app.ages = [];
    const frames = [];
    const draw = app.draw.bind(app);
    app.draw = () => {
      draw();
      frames.push(app.frame.ms);
    };
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    const {ages} = app;
    const of = (numbers) => {
      const sorted = numbers.sort((a, b) => a - b);
      const at = (part) => Math.round(10 * (sorted[Math.floor((sorted.length - 1) * part)] ?? NaN)) / 10;
      return {median: at(0.5), p99: at(0.99), max: at(1)};
    };
    const {totals} = app.live;
    const events = ['slices', 'operations', 'instants', 'counters', 'flows'].reduce((sum, name) => sum + totals[name] - before[name], 0);
    return {
      pictures: ages.length, events_per_second: Math.round(events / seconds),
      oldest_ms: of(ages.map(([drawn, oldest]) => drawn - oldest)), newest_ms: of(ages.map(([drawn, , newest]) => drawn - newest)),
      frame_ms: of(frames), missed_updates: app.live.missed, state: document.getElementById('state').textContent,
    };
  }, Number(seconds));
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
