// The view in the address, so that it can be shared and comes back when the page is opened again.

/** @typedef {{
 *   tab?: string, from?: number, to?: number, selected?: [number, number], range?: [number, number], search?: string,
 *   pinned?: string[], hidden?: string[],
 * }} Place */

/** @param {Place} place */
export function written(place) {
  const parts = new URLSearchParams();
  if (place.tab) parts.set('tab', place.tab);
  if (place.from !== undefined && place.to !== undefined)
    parts.set('t', `${Math.round(place.from)}_${Math.round(place.to)}`);
  if (place.selected) parts.set('s', place.selected.join('.'));
  if (place.range) parts.set('r', place.range.map(Math.round).join('_'));
  if (place.search) parts.set('q', place.search);
  if (place.pinned?.length) parts.set('pin', place.pinned.join('.'));
  if (place.hidden?.length) parts.set('hide', place.hidden.slice(0, 100).join('.'));
  return `#${parts}`;
}

/** Two numbers with something between; none if they are no numbers. @param {string | null} text
 * @param {string} separator @returns {[number, number] | undefined} */
function two(text, separator) {
  const [a, b] = (text ?? '').split(separator).map(Number);
  return text && Number.isFinite(a) && Number.isFinite(b) ? [a, b] : undefined;
}

/** @param {string} hash @returns {Place} */
export function read(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ''));
  const list = (/** @type {string} */ name) => parts.get(name)?.split('.').filter(Boolean) ?? [];
  const times = two(parts.get('t'), '_');
  return {
    tab: parts.get('tab') ?? undefined,
    from: times?.[0],
    to: times?.[1],
    selected: two(parts.get('s'), '.'),
    range: two(parts.get('r'), '_'),
    search: parts.get('q') ?? undefined,
    pinned: list('pin'),
    hidden: list('hide'),
  };
}
