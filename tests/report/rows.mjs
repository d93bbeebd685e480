// Reads pages of traces, whose names are the lines of the input, with their own modules, and prints what is
// on them as one JSON object for each:
//
//   slices      [process, thread, category, name, begin, length, parent]
//   operations  [process, category, name, begin, length]
//   instants    [process, thread, category, name, time]
//   counters    [process, category, name, id, series, time, value]
//   cpus        [cpu, thread, begin, length]
//   states      [process, thread, state, begin, length]
//   flows       [process, thread, name, time, whether an arrow leads to it]
//
// Times are texts of nanoseconds. What has not ended has no length. The parent of a slice is what a person
// takes for it: of those drawn above it that last as long, the one that ends first.
import {readFileSync} from 'node:fs';
import {Bytes, KIND, hasLength, inflate, segments} from '../../crates/trace-report/ui/decode.js';

/** The content of an element. */
function section(page, id) {
  const begin = `<script type="text/plain" id="${id}">`;
  const from = page.indexOf(begin) + begin.length;
  return page.slice(from, page.indexOf('</script>', from));
}

async function rows(page) {
  const meta = JSON.parse(section(page, 'meta'));
  const listed = JSON.parse(new TextDecoder().decode(await inflate(section(page, 'tracks'))));
  const {texts, whats, processes, threads, tracks} = listed;
  const kinds = Uint8Array.from(tracks, ([kind]) => kind);
  const time = (ns) => String(BigInt(meta.base) + BigInt(ns));
  const named = (what) => (whats[what] ?? [0, 0]).map((text) => texts[text]);
  const found = {slices: [], operations: [], instants: [], counters: [], cpus: [], states: [], flows: []};
  // The last slice of each row, by track.
  const above = tracks.map(() => []);
  for (let block = 0; block < listed.blocks.length; block++) {
    for (const part of segments(await inflate(section(page, `t${block}`)), kinds, meta.unit ?? 1)) {
      const [kind, owner, , , what, id, series] = tracks[part.track];
      const pid = () => processes[owner][0];
      const thread = () => [processes[threads[owner][2]][0], threads[owner][0]];
      for (let i = 0; i < part.n; i++) {
        const at = part.ts[i];
        if (kind === KIND.counter) {
          found.counters.push([pid(), ...named(what), id, texts[series], time(at), part.values[i]]);
          continue;
        }
        const end = hasLength(kind) ? part.end[i] : at;
        const length = end === Infinity ? null : end - at;
        if (kind === KIND.instants) found.instants.push([...thread(), ...named(part.what[i]), time(at)]);
        if (kind === KIND.operations) found.operations.push([pid(), ...named(part.what[i]), time(at), length]);
        if (kind === KIND.cpu) found.cpus.push([String(owner), threads[part.what[i]][0], time(at), length]);
        if (kind === KIND.states) found.states.push([...thread(), named(part.what[i])[1], time(at), length]);
        if (kind !== KIND.thread) continue;
        const [name, row] = [named(part.what[i]), part.depth[i]];
        const around = above[part.track].slice(0, row).filter((of) => of && of.begin <= at && of.end >= end);
        // What has not ended has no difference.
        const byEnd = (a, b) => (a.end === b.end ? b.begin - a.begin || b.row - a.row : a.end - b.end);
        const parent = around.sort(byEnd)[0];
        found.slices.push([...thread(), ...name, time(at), length, parent?.name ?? null]);
        above[part.track][row] = {begin: at, end, row, name: name[1]};
      }
    }
  }
  const input = new Bytes(await inflate(section(page, 'flows')));
  let at = 0;
  for (let left = input.number(); left > 0; left--) {
    const isNext = input.number() % 2 === 1;
    at = (isNext ? at : 0) + input.number() * (meta.unit ?? 1);
    const [tid, , process] = threads[input.number()];
    found.flows.push([processes[process][0], tid, named(input.number())[1], time(at), isNext]);
  }
  return found;
}

for (const path of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  console.log(JSON.stringify(await rows(readFileSync(path, 'utf8'))));
}
