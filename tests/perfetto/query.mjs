// Runs a query over a trace in Perfetto's trace processor and prints the rows as a JSON array of objects.
//
//   node query.mjs UI_DIR TRACE SQL
//   node query.mjs UI_DIR < QUESTIONS
//
// A question is a line of JSON, [TRACE, SQL], and is answered by a line. Many of them cost one start.
//
// UI_DIR is a built Perfetto UI, or only its engine: the engine's bundle is a web worker that answers remote
// procedure calls over a message port, protobuf both ways. Only the few fields needed here are spoken.
import {existsSync, readFileSync} from 'node:fs';
import {basename, join} from 'node:path';
import {MessageChannel} from 'node:worker_threads';

const [uiDir, ...question] = process.argv.slice(2);
if (!uiDir || ![0, 2].includes(question.length)) {
  console.error('usage: query.mjs UI_DIR [TRACE SQL]');
  process.exit(2);
}

// Methods of the processor, and the fields of a call (to it) and of its answer.
const METHOD = {append: 1, finalize: 2, query: 3, reset: 11};
const CALL = {sequence: 1, method: 2, append: 101, query: 103};
const ANSWER = {fatal: 5, append: 201, query: 203, finalize: 212};

// ---- protobuf
// ----------------------------------------------------------------------------------------------------
const encodeVarint = (value) => {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 0x80n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
};
const number = (field, value) => Buffer.concat([encodeVarint(field * 8), encodeVarint(value)]);
const bytes = (field, value) => Buffer.concat([encodeVarint(field * 8 + 2), encodeVarint(value.length), value]);

class Input {
  constructor(buffer) {
    this.buffer = buffer;
    this.at = 0;
  }
  get more() {
    return this.at < this.buffer.length;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.buffer[this.at++];
      if (byte === undefined) throw new RangeError('message is incomplete');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  take(length) {
    if (this.at + length > this.buffer.length) throw new RangeError('message is incomplete');
    this.at += length;
    return this.buffer.subarray(this.at - length, this.at);
  }
  // All fields as [number, value]; strings and messages stay bytes.
  *fields() {
    while (this.more) {
      const key = Number(this.varint());
      const wire = key & 7;
      if (wire === 0) yield [key >> 3, this.varint()];
      else if (wire === 1) yield [key >> 3, this.take(8)];
      else if (wire === 2) yield [key >> 3, this.take(Number(this.varint()))];
      else if (wire === 5) yield [key >> 3, this.take(4)];
      else throw new Error(`wire type ${wire}`);
    }
  }
}
const fieldsOf = (buffer) => [...new Input(buffer).fields()];
const textOf = (buffer) => Buffer.from(buffer).toString('utf8');

// ---- the worker
// --------------------------------------------------------------------------------------------------
const BUNDLE = ['engine_bundle.js', 'engine_bundle.node.js'].find((name) => existsSync(join(uiDir, name)));
function startWorker() {
  const {port1, port2} = new MessageChannel();
  const local = (url) => readFileSync(join(uiDir, basename(String(url))));
  const scope = {location: {href: 'http://localhost/engine_bundle.js'}};
  class LocalRequest {
    open(method, url) {
      this.url = url;
    }
    send() {
      const file = local(this.url);
      this.status = 200;
      this.response = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
    }
  }
  const fetchLocal = async (url) => new Response(local(url), {headers: {'content-type': 'application/wasm'}});
  const quiet = Object.fromEntries(['log', 'info', 'debug', 'warn', 'error'].map((name) => [name, () => {}]));
  // What a worker has, and nothing of what Node adds: the bundle decides by that where it runs.
  const globals = {
    self: scope, window: undefined, location: scope.location, fetch: fetchLocal, process: undefined,
    require: undefined, importScripts: () => {}, WorkerGlobalScope: Object, XMLHttpRequest: LocalRequest,
    console: quiet,
  };
  const source = readFileSync(join(uiDir, BUNDLE), 'utf8');
  new Function(...Object.keys(globals), source)(...Object.values(globals));
  scope.onmessage({data: port2});
  return port1;
}

let port;
let received;
let answers;
let wake = () => {};
let sequence;
function start() {
  port = startWorker();
  [received, answers, sequence] = [Buffer.alloc(0), [], 0];
  port.on('message', (data) => {
    received = Buffer.concat([received, Buffer.from(data.buffer, data.byteOffset, data.byteLength)]);
    for (;;) {
      const input = new Input(received);
      try {
        input.varint();
        answers.push(Object.fromEntries(fieldsOf(input.take(Number(input.varint())))));
      } catch (error) {
        if (error instanceof RangeError) break;
        throw error;
      }
      received = received.subarray(input.at);
    }
    wake();
  });
}

async function nextAnswer() {
  while (answers.length === 0) await new Promise((resolve) => { wake = resolve; });
  const answer = answers.shift();
  if (answer[ANSWER.fatal]) throw new Error(textOf(answer[ANSWER.fatal]));
  return answer;
}

function call(method, argument = Buffer.alloc(0)) {
  const body = Buffer.concat([number(CALL.sequence, sequence++), number(CALL.method, method), argument]);
  port.postMessage(new Uint8Array(bytes(1, body)));
}

function failOn(part, errorField) {
  for (const [field, value] of part ? fieldsOf(part) : []) {
    if (field === errorField && value.length) throw new Error(textOf(value));
  }
}

// An engine for the next trace: the first one, or the same one without what it has loaded, for a start takes
// several times as long as a small trace.
async function renew() {
  if (!port) return start();
  call(METHOD.reset);
  await nextAnswer();
}

async function load(trace) {
  const CHUNK = 4 << 20;
  for (let at = 0; at < trace.length; at += CHUNK) {
    call(METHOD.append, bytes(CALL.append, trace.subarray(at, at + CHUNK)));
    failOn((await nextAnswer())[ANSWER.append], 2);
  }
  call(METHOD.finalize);
  failOn((await nextAnswer())[ANSWER.finalize], 1);
}

// A result comes in batches: cell types, then the values of each type packed by themselves.
async function query(text) {
  call(METHOD.query, bytes(CALL.query, bytes(1, Buffer.from(text))));
  const columns = [];
  const cells = [];
  for (let isLast = false; !isLast;) {
    const result = (await nextAnswer())[ANSWER.query];
    if (!result) break;
    for (const [field, value] of fieldsOf(result)) {
      if (field === 1) columns.push(textOf(value));
      if (field === 2 && value.length) throw new Error(textOf(value));
      if (field !== 3) continue;
      const values = {types: [], 2: [], 3: [], 4: [], 5: []};
      for (const [part, packed] of fieldsOf(value)) {
        if (part === 1 || part === 2) {
          for (const input = new Input(packed); input.more;) {
            if (part === 1) values.types.push(Number(input.varint()));
            else values[2].push(BigInt.asIntN(64, input.varint()));
          }
        } else if (part === 3) {
          for (let at = 0; at < packed.length; at += 8) values[3].push(packed.readDoubleLE(at));
        } else if (part === 4) values[5].push('<bytes>');
        else if (part === 5) values[4].push(...textOf(packed).split('\0'));
        else if (part === 6) isLast = packed !== 0n;
      }
      cells.push(...values.types.map((type) => (type in values ? values[type].shift() : null)));
    }
  }
  const rows = [];
  for (let at = 0; columns.length && at < cells.length; at += columns.length) {
    rows.push(Object.fromEntries(columns.map((name, index) => [name, cells[at + index]])));
  }
  return rows;
}

const exact = (key, value) =>
  typeof value !== 'bigint' ? value : Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
const lines = () => readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
let asked = '';
try {
  let text = '';
  for (const [trace, sql] of question.length ? [question] : lines()) {
    asked = trace;
    await renew();
    await load(readFileSync(trace));
    text += JSON.stringify(await query(sql), exact) + '\n';
  }
  process.stdout.write(text, () => process.exit(0));
} catch (error) {
  console.error(`${asked}: ${error.message ?? error}`);
  process.exit(1);
}
