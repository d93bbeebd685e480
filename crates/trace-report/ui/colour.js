// Colours that are stable by name, with text on them that can be read.

/** @type {Map<string, string>} */
const cache = new Map();
let isDark = false;
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
}

/** A number from 0 up to 2^32 for a name. @param {string} name */
export function hashOf(name) {
  let hash = 2166136261;
  for (let i = 0; i < name.length && i < 200; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** The colour of a name. @param {string} name */
export function colourOf(name) {
  let colour = cache.get(name);
  if (!colour) {
    const hash = hashOf(name.replace(/\d+/g, ''));
    const hue = (hash % 36) * 10;
    const shade = (hash >> 8) % 3;
    colour = isDark
      ? `hsl(${hue} ${38 + 5 * shade}% ${31 + 2 * shade}%)`
      : `hsl(${hue} ${58 + 7 * shade}% ${79 - 3 * shade}%)`;
    cache.set(name, colour);
  }
  return colour;
}
