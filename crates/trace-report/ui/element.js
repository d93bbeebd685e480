// Elements with attributes and contents. Text of a trace only ever becomes text.

/** @typedef {Node | string | null | false | undefined} Child */

/** @param {string} name @param {Record<string, any>} [attributes] @param {...Child} children
 * @returns {HTMLElement} */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.assign(element.style, value);
    else if (value === true) element.setAttribute(key, '');
    else if (value !== false && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(
    ...children.filter((child) => child || child === '').map((child) => /** @type {Node | string} */ (child)),
  );
  return element;
}

/** An element of the page. @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/** A table: the columns from `texts` on are numbers. @param {string} label @param {string[]} header
 * @param {number} texts @param {Child[][]} rows */
export function table(label, header, texts, rows) {
  const cell = (/** @type {Child} */ content, /** @type {number} */ i) => h('td', {class: i >= texts && 'n'}, content);
  return h(
    'table',
    {'aria-label': label},
    h('thead', {}, h('tr', {}, ...header.map((text, i) => h('th', {scope: 'col', class: i >= texts && 'n'}, text)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map(cell)))),
  );
}

/** A part of the first screen. @param {string} title @param {string} note @param {...Child} children */
export function card(title, note, ...children) {
  return h('section', {class: 'card'}, h('h2', {}, title), note && h('p', {class: 'note'}, note), ...children);
}
