// Tests the modules of the report's page that need no browser: node --test modules.mjs
import assert from 'node:assert/strict';
import test from 'node:test';
import {deflateRawSync} from 'node:zlib';
import {KIND, inflate, segments} from '../../crates/trace-report/ui/decode.js';
import {read, written} from '../../crates/trace-report/ui/hash.js';
import {niceStep} from '../../crates/trace-report/ui/draw.js';
import {after, rowsOf, visible} from '../../crates/trace-report/ui/pyramid.js';
import {bytes, moment, short, shown, time} from '../../crates/trace-report/ui/text.js';

test('texts', () => {
  assert.deepEqual([0, 999, 1500, 12345678, 1.5e9, 90e9, 7.2e12, 3e14].map(time), ['0 ns', '999 ns', '1.5 µs', '12.35 ms', '1.5 s', '1 min 30 s', '2 h', '3.472 d']);
  assert.deepEqual([0, 1234, 1500000, 0.25].map(short), ['0', '1\u202f234', '1.5M', '0.25']);
  assert.deepEqual([moment(0, 10), moment(1.5e6, 1e5), moment(2e9, 1e9)], ['0 s', '1.5 ms', '2 s']);
  assert.deepEqual([bytes(999), bytes(1e6)], ['999 B', '1 MB']);
  assert.equal(shown('a\u202eb\u0001<b>é🎉'), 'a\\u{202e}b\\u{1}<b>é🎉');
  assert.equal(shown('xxxxx', 3), 'xxx…');
  assert.deepEqual([1, 3, 12, 51, 0.3].map(niceStep), [1, 5, 20, 100, 0.5]);
});

test('a view comes back from the address', () => {
  const place = {tab: 'timeline', from: -20, to: 300, selected: [3, 7], range: [0, 10], search: 'a & b', pinned: ['h1', 't2'], hidden: ['p3']};
  assert.deepEqual(read(written(place)), place);
  assert.deepEqual(read('#t=x_y&s=1').from, undefined);
});

test('columns', async () => {
  // One slice track with two slices, one of them open, and a template with a number and a text.
  const columns = [
    0, 2, 5, 3, 8, 0, 0, 1, 4, 4, 1, 1, 1, 2, 0x68, 0x69, 1, 13, ...new TextEncoder().encode('{"n":\u0001,"s":\u0002}'), 0, 6, 5, 0, 0,
    1, 2, 1, 1, 0, 6, 3,
  ];
  columns[17] = new TextEncoder().encode('{"n":\u0001,"s":\u0002}').length;
  const packed = deflateRawSync(Uint8Array.from(columns)).toString('base64');
  const [slices, counter] = segments(await inflate(packed), Uint8Array.from([KIND.thread, KIND.counter]), 10);
  assert.deepEqual([...slices.ts], [50, 80]);
  assert.deepEqual([...slices.end], [120, Infinity]);
  assert.deepEqual([...slices.depth], [0, 1]);
  assert.deepEqual([...slices.what], [4, 4]);
  assert.deepEqual(slices.texts, ['hi']);
  assert.deepEqual(slices.templates.map(({columns}) => columns.map((column) => [...column])), [[[3, -3], [0, 0]]]);
  assert.deepEqual([...counter.values], [3, 1]);
});

test('a picture has few rectangles, which stand for everything', () => {
  const n = 100000;
  const ts = Float64Array.from({length: n}, (_, i) => i * 10);
  const end = Float64Array.from({length: n}, (_, i) => i * 10 + (i % 1000 === 7 ? 9 : 1));
  const [row] = rowsOf(null, ts, end, n * 10);
  for (const [from, to, grain] of [[0, n * 10, 1000], [5000, 6000, 1], [0, n * 10, 50000]]) {
    let [rectangles, count, last] = [0, 0, -1];
    visible(row, from, to, grain, (a, b, slice, of) => {
      rectangles++;
      count += of;
      assert.ok(a > last && b >= a);
      last = a;
    });
    assert.ok(rectangles <= 2 * ((to - from) / grain + 1), 'also where long and short ones alternate');
    const all = after(row.index, ts, to) - after(row.index, end, from - 1);
    assert.ok(Math.abs(count - all) <= 2 * grain, `${count} of ${all}`);
    assert.ok(rectangles <= (to - from) / grain + 2, `${rectangles}`);
  }
  const found = [];
  visible(row, 0, 10000, 10000, (a, b, slice) => found.push(slice));
  assert.equal(found[0] % 1000, 7, 'the longest is shown');
});
