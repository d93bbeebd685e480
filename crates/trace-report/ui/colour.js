// Colours that are stable by name, with text on them that can be read.

/** @typedef {{colour: string, pixel: number, faint: number}} Look */

/** @type {Map<string, Look>} */
const cache = new Map();
let isDark = false;
/** Goes up when all colours change. */
export let palette = 0;
/** Colours of everything else, from the style sheet. @type {Record<string, string>} */
export const theme = {};

/** Reads the colours of the current theme. */
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of [
    'bg',
    'raised',
    'line',
    'grid',
    'text',
    'dim',
    'accent',
    'range',
    'loss',
    'slice-text',
    'scheme',
  ]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  isDark = theme.scheme === 'dark';
  cache.clear();
  palette++;
}

/** A number from 0 up to 2^32 for a name. @param {string} name */
export function hashOf(name) {
  let hash = 2166136261;
  for (let i = 0; i < name.length && i < 200; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** Red, green or blue of a hue, from 0 to 255. @param {number} hue @param {number} saturation
 * @param {number} lightness @param {number} n 0 for red, 8 for green, 4 for blue */
function part(hue, saturation, lightness, n) {
  const k = (n + hue / 30) % 12;
  const reach = saturation * Math.min(lightness, 1 - lightness);
  return Math.round(255 * (lightness - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
}

/** @param {number} hue @param {number} saturation @param {number} lightness @returns {Look} */
function look(hue, saturation, lightness) {
  const [r, g, b] = [0, 8, 4].map((n) => part(hue, saturation, lightness, n));
  const pixel = (b << 16) | (g << 8) | r;
  return {colour: `rgb(${r} ${g} ${b})`, pixel: ((255 << 24) | pixel) >>> 0, faint: ((64 << 24) | pixel) >>> 0};
}

/** The colour of a name, as a text and as pixels of an image. @param {string} name @returns {Look} */
export function lookOf(name) {
  let found = cache.get(name);
  if (!found) {
    const hash = hashOf(name.replace(/\d+/g, ''));
    const hue = (hash % 36) * 10;
    const shade = (hash >> 8) % 3;
    const [saturation, lightness] = isDark
      ? [0.38 + 0.05 * shade, 0.31 + 0.02 * shade]
      : [0.58 + 0.07 * shade, 0.79 - 0.03 * shade];
    found = look(hue, saturation, lightness);
    cache.set(name, found);
  }
  return found;
}

/** Hues of what a thread does; waiting has none. @type {Record<string, number>} */
const STATES = {running: 140, ready: 32};

/** The colour of what a thread does. @param {string} state @returns {Look} */
export function lookOfState(state) {
  const hue = STATES[state];
  const [saturation, lightness] = hue === undefined ? [0.06, isDark ? 0.27 : 0.86] : [0.6, isDark ? 0.42 : 0.58];
  return look(hue ?? 220, saturation, lightness);
}

/** @param {string} name */
export const colourOf = (name) => lookOf(name).colour;
