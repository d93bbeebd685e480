// The worker: decodes one block after the other.
import {inflate, segments} from './decode.js';

/** @type {Uint8Array} */
let trackKinds = new Uint8Array();
let timeUnit = 1;

addEventListener('message', async ({data}) => {
  if (data.kinds) {
    trackKinds = data.kinds;
    timeUnit = data.unit;
    return;
  }
  try {
    const bytes = await inflate(data.text);
    if (data.isPlain) {
      postMessage({id: data.id, result: bytes}, {transfer: [bytes.buffer]});
      return;
    }
    const result = segments(bytes, trackKinds, timeUnit);
    const buffers = new Set();
    for (const segment of result) {
      // Few bytes are copied faster than they are handed over.
      if (segment.n < 256) continue;
      for (const value of Object.values(segment)) if (ArrayBuffer.isView(value)) buffers.add(value.buffer);
      for (const {columns} of segment.templates ?? []) for (const column of columns) buffers.add(column.buffer);
    }
    postMessage({id: data.id, result}, {transfer: [...buffers]});
  } catch (error) {
    postMessage({id: data.id, error: String(error)});
  }
});
