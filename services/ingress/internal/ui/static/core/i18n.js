import en from '../lang/en.js';
import ko from '../lang/ko.js';

/** Languages by their codes, each with its own name. */
export const languages = { en: 'English', ko: '한국어' };

const catalogues = { en, ko };
const KEY = 'hydrallm.language';
let current = pick();

function pick() {
  const stored = read();
  if (stored in catalogues) return stored;
  const { locale } = document.documentElement.dataset; // of the gateway, if it was told one
  if (locale in catalogues) return locale;
  return navigator.languages?.some((l) => /^ko\b/i.test(l)) ? 'ko' : 'en';
}

function read() {
  try { return localStorage.getItem(KEY) ?? ''; } catch { return ''; }
}

export const language = () => current;

/** Switches the language and remembers it. Who shows text listens to the event. */
export function setLanguage(code) {
  if (!(code in catalogues)) return;
  current = code;
  try { localStorage.setItem(KEY, code); } catch { /* it holds until the page is left */ }
  document.documentElement.lang = code;
  window.dispatchEvent(new Event('language'));
}

/**
 * Gives a text. One that the language lacks is given in Korean, and one that is nowhere is its key.
 * @param {string} key
 * @param {Record<string, any>} [values] for {name} in the text
 */
export function t(key, values = {}) {
  const text = catalogues[current][key] ?? ko[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (all, name) => (name in values ? String(values[name]) : all));
}

/** Gives a text about n things; the one for a single thing is under key.one. */
export function tn(key, n, values = {}) {
  const one = new Intl.PluralRules(current).select(n) === 'one';
  return t(one ? `${key}.one` : key, { n: n.toLocaleString(current), ...values });
}

/** Whether there is such a text. */
export const known = (key) => key in catalogues[current];

document.documentElement.lang = current;
