import { h } from './dom.js';
import { language, t } from './i18n.js';

const dash = '–';

export const number = (n) => Number(n ?? 0).toLocaleString(language());

/** 48213 as 48.2 k; small numbers as they are. */
export function compact(n) {
  for (const [size, unit] of [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']]) {
    if (n >= size) return `${digits(n / (unit === 'k' ? 1e3 : size))} ${unit}`;
  }
  return number(n);
}

const digits = (n) => n.toLocaleString(language(), { maximumFractionDigits: n < 10 ? 2 : n < 100 ? 1 : 0 });

/** A share; one that is nearly but not quite all never shows as all. */
export function percent(part, whole) {
  if (!whole) return dash;
  const p = (part / whole) * 100;
  const text = (n) => n.toLocaleString(language(), { maximumFractionDigits: n > 99 || n < 1 ? 2 : 1 });
  if (p < 100 && p > 99.99) return `${text(99.99)} %`;
  return `${text(p)} %`;
}

/** Milliseconds, in the unit that fits. */
export function duration(ms) {
  if (!ms) return dash;
  if (ms < 1000) return `${number(Math.round(ms))} ${t('unit.ms')}`;
  if (ms < 60_000) return `${digits(ms / 1000)} ${t('unit.s')}`;
  return left(ms / 1000);
}

/** Seconds in the two largest units. */
export function left(seconds) {
  const n = Math.max(0, Math.ceil(seconds));
  const d = Math.floor(n / 86400), hours = Math.floor((n % 86400) / 3600), m = Math.floor((n % 3600) / 60);
  if (d) return `${d} ${t('unit.d')} ${hours} ${t('unit.h')}`;
  if (hours) return `${hours} ${t('unit.h')} ${m} ${t('unit.min')}`;
  if (m >= 2) return `${m} ${t('unit.min')}`;
  return `${n} ${t('unit.s')}`;
}

/** Money in the unit of the prices. */
export function money(n) {
  if (n === null || n === undefined) return dash;
  return `$ ${n.toLocaleString(language(), { minimumFractionDigits: 2, maximumFractionDigits: n && n < 0.1 ? 5 : 2 })}`;
}

const date = (text, options) => {
  const d = new Date(text);
  return Number.isNaN(d.getTime()) ? dash : new Intl.DateTimeFormat(language(), options).format(d);
};

export const clock = (text) => date(text, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
export const minute = (text) => date(text, { hour: '2-digit', minute: '2-digit', hour12: false });
export const day = (text) => date(text, { month: 'short', day: 'numeric' });
export const dateTime = (text) => date(text, { dateStyle: 'medium', timeStyle: 'medium', hour12: false });

/** The time of today, or the day before it. */
export function when(text) {
  return new Date(text).toDateString() === new Date().toDateString() ? clock(text) : `${day(text)} ${minute(text)}`;
}

export function time(text) {
  const d = new Date(text);
  const iso = Number.isNaN(d.getTime()) ? '' : d.toISOString();
  return h('time', { datetime: iso, title: dateTime(text) }, when(text));
}

/** The time that is left until an instant, which goes on by itself. */
export function countdown(until) {
  const element = h('span', { data: { until: String(new Date(until).getTime()) } });
  tick(element);
  return element;
}

function tick(element) {
  const text = left((Number(element.dataset.until) - Date.now()) / 1000);
  if (element.textContent !== text) element.textContent = text;
}

setInterval(() => document.querySelectorAll('[data-until]').forEach(tick), 1000);

const names = new Map(); // of named client keys, by their ids

/** Takes in how client keys are called. */
export function learnClients(keys) {
  for (const k of keys) names.set(k.id, k.name);
}

/** Who asked, in words. */
export function client(principal) {
  if (principal === 'admin' || principal === 'anonymous' || principal === 'internal' || principal === '') return t(`client.${principal || 'anonymous'}`);
  return names.get(principal) ?? principal;
}

/** The client that somebody means by a name, or by its id. */
export const clientId = (text) => [...names].find(([, name]) => name === text)?.[0] ?? text;
