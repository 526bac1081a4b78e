// Building of elements. Text only ever becomes text: nothing here, or anywhere but in html() below, reads markup.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Makes an element.
 * @param {string} tag
 * @param {Record<string, any> | null} [props] class, on (listeners), data, style (by property); the rest are attributes. null and false leave one out.
 * @param {...any} children elements, texts, arrays of them; null and false are left out
 * @returns {HTMLElement}
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Makes an element of SVG, like h. @returns {SVGElement} */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') for (const [type, fn] of Object.entries(value)) element.addEventListener(type, fn);
    else if (name === 'data') for (const [key, text] of Object.entries(value)) element.dataset[key] = text;
    else if (name === 'style') for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else if (name === 'value') element.value = value;
    else if (name === 'href') element.setAttribute('href', safeLink(value));
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== null && child !== undefined && child !== false) element.append(String(child));
  }
}

/** Puts other children into an element. */
export function set(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Gives a link that may be followed: one of this page, or to http and https. Anything else leads nowhere. */
export function safeLink(text) {
  if (String(text).startsWith('#')) return text;
  try {
    const url = new URL(text, document.baseURI);
    if (url.protocol === 'http:' || url.protocol === 'https:') return url.href;
  } catch { /* no address */ }
  return '#';
}

/** Tells whether a text is the address of a page. */
export function isLink(text) {
  return /^https?:\/\/[^\s/]/i.test(String(text)) && safeLink(text) !== '#';
}

/**
 * The only place where markup is read: what the gateway made of the Markdown of an answer, and cleaned (POST /v1/admin/markdown). The Content-Security-Policy
 * is there in case it did not.
 */
export function html(element, cleaned) {
  const page = new DOMParser().parseFromString(cleaned, 'text/html');
  for (const bad of page.querySelectorAll('script, style, iframe, object, embed, form, link, meta, img, svg, base')) bad.remove();
  element.replaceChildren(...page.body.childNodes);
}

const lists = new WeakMap();

/**
 * Shows a list so that what has not changed stays where and what it is: nothing loses focus, nothing jumps.
 * @template T
 * @param {Element} parent
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => Element} render
 * @param {(item: T) => string} [signature] what an element depends on; another one makes another element
 */
export function keyed(parent, items, key, render, signature = JSON.stringify) {
  const before = lists.get(parent) ?? new Map();
  const now = new Map();
  let at = null;
  for (const item of items) {
    const id = key(item);
    if (now.has(id)) continue;
    const sign = signature(item);
    let entry = before.get(id);
    if (!entry || entry.sign !== sign) {
      const element = render(item);
      if (entry?.element.contains(document.activeElement)) keepFocus(entry.element, element);
      else entry?.element.remove();
      entry = { element, sign };
    }
    now.set(id, entry);
    const next = at ? at.nextSibling : parent.firstChild;
    if (next !== entry.element) parent.insertBefore(entry.element, next);
    at = entry.element;
  }
  while (at ? at.nextSibling : parent.firstChild) (at ? at.nextSibling : parent.firstChild).remove();
  lists.set(parent, now);
}

// keepFocus moves the focus into the place of an element that goes.
function keepFocus(old, fresh) {
  const all = (root) => [root, ...root.querySelectorAll('a, button, input, select, [tabindex]')];
  const index = all(old).indexOf(document.activeElement);
  old.replaceWith(fresh);
  all(fresh)[index]?.focus();
}

let serial = 0;
/** A new id. */
export const newId = (prefix) => `${prefix}-${++serial}`;
