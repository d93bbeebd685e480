// Makes the pictures of the documentation: from the page of the demo demo.png, report-overview.png and
// report-timeline.png, and from any page a small one of a part of its timeline.
//
//   node picture.mjs PAGE DIRECTORY
//   node picture.mjs PAGE DIRECTORY NAME [FROM TO]
//
// NAME is the picture's, without its ending; FROM and TO are parts of the time, from 0 to 1. The modules are
// looked for in the working directory, as by drive.mjs.
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {launch} from './browser.mjs';

const [file, directory, name, from = '0', to = '1'] = process.argv.slice(2);
if (!directory) {
  console.error('usage: picture.mjs PAGE DIRECTORY');
  process.exit(2);
}
const browser = await launch();

// Selects a slice that an arrow comes from, and shows some frames around it.
const select = async ([name, frames]) => {
  const app = globalThis.traceReport;
  await app.model.loadAll(() => true);
  const track = app.model.tracks.find((of) => of.kind === 0 && [...of.data.what].some((what) => app.model.nameOf(what) === name));
  const {ts, end, what} = track.data;
  const all = [...what.keys()].filter((i) => app.model.nameOf(what[i]) === name);
  // One of the longer ones, which has room for its arrows.
  const i = all.sort((a, b) => end[a] - ts[a] - end[b] + ts[b])[Math.floor(all.length * 0.7)];
  await app.go({track, i});
  const size = (app.model.length / 60) * frames;
  const length = end[i] - ts[i];
  app.show(ts[i] - length * 0.3 - size * 0.1, end[i] + length * 0.3 + size * 0.1);
  app.elements.scroller.scrollTop = 0;
};

try {
  const take = async (scheme, height, name, prepare, argument) => {
    const page = await browser.newPage({viewport: {width: 1100, height}, colorScheme: scheme});
    await page.goto(pathToFileURL(file).href);
    await page.waitForSelector('body[data-ready]');
    if (prepare) await page.evaluate(prepare, argument);
    await page.waitForTimeout(1000);
    await page.screenshot({path: join(directory, name)});
    await page.close();
  };
  if (name) {
    const show = async ([from, to]) => {
      const app = globalThis.traceReport;
      await app.model.loadAll(() => true);
      app.zoomTo(app.model.length * from, app.model.length * to);
    };
    await take('light', 480, `${name}.png`, show, [Number(from), Number(to)]);
  } else {
    await take('light', 640, 'report-overview.png');
    await take('light', 640, 'demo.png', select, ['render frame', 2.5]);
    await take('dark', 640, 'report-timeline.png', select, ['schedule tile', 6]);
  }
} finally {
  await browser.close();
}
