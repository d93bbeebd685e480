// The page of a trace: reads what the file has, and shows it.
import {App} from './app.js';
import {byId, h} from './element.js';
import {Model} from './model.js';
import {summaryOf} from './summary.js';
import {shown} from './text.js';

/* global WORKER */

/** Asks the worker for a part of the file. */
function connect() {
  const code = new Blob([WORKER], {type: 'text/javascript'});
  const worker = new Worker(URL.createObjectURL(code));
  /** @type {Map<string, [(result: any) => void, (error: Error) => void]>} */
  const waiting = new Map();
  worker.addEventListener('message', ({data}) => {
    const [resolve, reject] = waiting.get(data.id) ?? [];
    waiting.delete(data.id);
    if (data.error) reject?.(new Error(data.error));
    else resolve?.(data.result);
  });
  const fetchPart = (/** @type {string} */ id, isPlain = false) =>
    new Promise((resolve, reject) => {
      waiting.set(id, [resolve, reject]);
      worker.postMessage({id, text: byId(id).textContent, isPlain});
    });
  return {worker, fetchPart};
}

async function main() {
  const meta = JSON.parse(byId('meta').textContent);
  byId('name').textContent = shown(meta.name, 120);
  const {worker, fetchPart} = connect();
  const json = JSON.parse(new TextDecoder().decode(await fetchPart('tracks', true)));
  const kinds = Uint8Array.from(json.tracks, ([kind]) => kind);
  worker.postMessage({kinds, unit: meta.unit});
  const app = new App(new Model(meta, json, fetchPart), summaryOf);
  Object.assign(globalThis, {traceReport: app});
  await app.start();
  document.body.dataset.ready = 'true';
}

main().catch((error) => {
  byId('overview').replaceChildren(
    h('p', {class: 'banner bad'}, `This page cannot be shown: ${error}. It needs a browser of 2023 or newer.`),
  );
});
