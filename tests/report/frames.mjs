// Measures how fast the page of a trace comes up and follows its user, in a headless browser, and prints a
// JSON object: milliseconds until the first screen, until the timeline was drawn and until everything was
// decoded, and for each frame while it is zoomed and panned what it took of the main thread.
//
//   node frames.mjs PAGE [PROFILE]
//
// The modules are looked for in the working directory, as by drive.mjs. PROFILE is where a profile of the
// frames is written, for the developer tools of the browser, and beside it a trace.
import {writeFileSync} from 'node:fs';
import {pathToFileURL} from 'node:url';
import {launch} from './browser.mjs';

const [file, profile] = process.argv.slice(2);
if (!file) {
  console.error('usage: frames.mjs PAGE [PROFILE]');
  process.exit(2);
}
/** What a frame takes on a screen that shows sixty in a second. */
const FRAME_MS = 1000 / 60;

/** The value that a part of all are not above. */
const quantile = (values, part) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.ceil(part * sorted.length), sorted.length) - 1] ?? 0;
};

const browser = await launch();
try {
  const page = await browser.newPage({viewport: {width: 1280, height: 800}});
  // The time of the page itself, from the navigation to the frame that shows it.
  const shown = () =>
    page.evaluate(
      () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))),
    );
  const found = {};
  await page.goto(pathToFileURL(file).href, {waitUntil: 'commit'});
  await page.waitForFunction(() => document.body?.dataset.ready);
  found.first = await shown();
  // From the navigation to a timeline with every lane that is on the screen.
  await page.goto('about:blank');
  await page.goto(`${pathToFileURL(file).href}#tab=timeline`, {waitUntil: 'commit'});
  await page.waitForFunction(() => document.body?.dataset.ready);
  const isDrawn = () =>
    globalThis.traceReport.frame.count > 0 &&
    globalThis.traceReport.drawing.placed.every(
      ({lane}) => [lane.main, lane.marks, lane.states ?? null].every((track) => !track || track.data),
    );
  await page.waitForFunction(isDrawn);
  found.timeline = await shown();
  found.all = await page.evaluate(async () => {
    await globalThis.traceReport.model.loadAll(() => true);
    return performance.now();
  });
  found.slices = await page.evaluate(() =>
    globalThis.traceReport.model.tracks.reduce((sum, {data, kind}) => sum + (kind < 3 ? data.n : 0), 0),
  );

  // Zoom in, pan and zoom out, one step for each frame, as wheel and keys do.
  const session = await page.context().newCDPSession(page);
  if (profile) {
    await session.send('Profiler.enable');
    await session.send('Profiler.setSamplingInterval', {interval: 200});
    await session.send('Profiler.start');
  }
  const categories = ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline', 'blink'];
  await browser.startTracing(page, {categories});
  const drawn = await page.evaluate(async () => {
    const app = globalThis.traceReport;
    const frames = [];
    const next = () => new Promise((resolve) => requestAnimationFrame(resolve));
    app.elements.scroller.focus();
    await next();
    for (let step = 0; step < 240; step++) {
      const part = step % 120;
      if (part < 30) app.zoom(0.8, 0.4);
      else if (part < 60) app.pan(0.04);
      else if (part < 90) app.zoom(1 / 0.8, 0.5);
      else app.pan(part < 105 ? 0.04 : -0.04);
      await next();
      // The picture of this step was drawn in this frame, before the promise.
      frames.push([app.frame.rectangles, app.frame.ms]);
    }
    return frames;
  });
  const trace = JSON.parse((await browser.stopTracing()).toString());
  if (profile) {
    writeFileSync(profile, JSON.stringify((await session.send('Profiler.stop')).profile));
    writeFileSync(`${profile}.trace`, JSON.stringify(trace));
  }

  // Of the thread that ran the frames: all of its tasks from one frame to the next.
  const events = trace.traceEvents.filter(({ph}) => ph === 'X');
  const {pid, tid} = events.find(({name}) => name === 'FireAnimationFrame');
  const own = events.filter((of) => of.pid === pid && of.tid === tid).sort((a, b) => a.ts - b.ts || b.dur - a.dur);
  const tasks = [];
  for (const event of own) {
    const last = tasks[tasks.length - 1];
    if (last && event.ts < last.ts + last.dur) last.isFrame ||= event.name === 'FireAnimationFrame';
    else if (event.name.endsWith('RunTask')) tasks.push({...event, isFrame: false});
  }
  const frames = [];
  for (const {ts, dur, tdur, isFrame} of tasks) {
    if (isFrame) frames.push({ts, wall: 0, cpu: 0});
    const frame = frames[frames.length - 1];
    if (frame) [frame.wall, frame.cpu] = [frame.wall + dur / 1000, frame.cpu + (tdur ?? 0) / 1000];
  }
  const missed = frames.slice(1).map(({ts}, i) => Math.max(0, Math.round((ts - frames[i].ts) / 1000 / FRAME_MS) - 1));
  const sum = missed.reduce((a, b) => a + b, 0);
  const [wall, cpu] = ['wall', 'cpu'].map((member) => frames.map((frame) => frame[member]));
  Object.assign(found, {
    frames: frames.length,
    median: quantile(wall, 0.5),
    p95: quantile(wall, 0.95),
    cpuMedian: quantile(cpu, 0.5),
    cpuP95: quantile(cpu, 0.95),
    missed: sum / (sum + frames.length),
    rectangles: Math.max(...drawn.map(([count]) => count)),
    script: quantile(drawn.map(([, ms]) => ms), 0.95),
  });
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
