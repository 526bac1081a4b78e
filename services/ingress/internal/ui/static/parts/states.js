// How a place looks that has nothing to show yet, or nothing at all, or can't.
import { ApiError, passes } from '../core/api.js';
import { h } from '../core/dom.js';
import { t } from '../core/i18n.js';
import { left } from '../core/format.js';
import { copyButton } from './toast.js';

export function loading(lines = 4) {
  return h('div', { class: 'skeleton', role: 'status', 'aria-label': t('state.loading') }, Array.from({ length: lines }, () => h('i')));
}

/**
 * @param {string} title
 * @param {string} [text] what to do next
 * @param {string} [command] to copy
 */
export function empty(title, text, command) {
  return h('div', { class: 'empty', data: { state: 'empty' } }, h('strong', null, title), text && h('span', null, text),
    command && h('div', { class: 'copy' }, h('pre', null, command), copyButton(command)));
}

const SHORTEST = 1000, LONGEST = 30_000; // between two attempts, in milliseconds

/**
 * What went wrong, with the id to search for. What may pass is tried again as long as it is to be seen, after as much time as it has lasted until then. It is said
 * aloud once.
 * @param {Error} error
 * @param {() => void} [retry] shows something in its place
 */
export function failed(error, retry) {
  if (isMissing(error)) return h('div', { data: { state: 'missing' } }, empty(t('error.route')));
  const again = retry && passes(error), lasts = again ? Date.now() - error.since : 0;
  const once = () => { // what it shows takes the place of all this
    clearTimeout(timer);
    button.disabled = true;
    retry();
  };
  const button = retry && h('button', { class: 'btn small', type: 'button', on: { click: once } }, t('action.retry'));
  const element = h('div', { class: 'error', role: lasts < SHORTEST && 'alert', data: { state: 'error' } }, h('strong', null, words(error)),
    error.id && h('span', { class: 'sub' }, t('error.id', { id: error.id })), again && h('span', { class: 'sub' }, t('error.again')), button);
  const pause = Math.max(SHORTEST, Math.min(LONGEST, lasts), (error.retryAfter || 0) * 1000) * (1 + Math.random() / 4);
  const timer = again ? setTimeout(() => { if (element.isConnected) once(); }, pause) : 0;
  return element;
}

/** Whether the gateway does not have the route that was asked for. */
export const isMissing = (error) => error.status === 404 && /no such admin route/i.test(error.message);

/** An error in words. */
export function words(error) {
  if (!(error instanceof ApiError)) return String(error?.message ?? error);
  if (error.status === 0) return t('error.unreachable');
  if (isMissing(error)) return t('error.route');
  if (error.status === 429 && error.retryAfter) return t('error.wait', { message: error.message, time: left(error.retryAfter) });
  return error.message || t('error.status', { status: error.status });
}

/**
 * Loads something and shows it, or that it loads, or why not. What is shown already stays until there is something better.
 * @param {Element} into
 * @param {() => Promise<any>} get
 * @param {(value: any) => any} show gives what is put in
 */
export async function load(into, get, show, { keep = false, signal } = {}) {
  if (!keep || !into.childElementCount) into.replaceChildren(loading());
  try {
    const value = await get();
    if (signal?.aborted) return;
    const content = show(value);
    if (content !== undefined) into.replaceChildren(...[content].flat().filter(Boolean));
  } catch (e) {
    if (e.name === 'AbortError' || signal?.aborted) return;
    into.replaceChildren(failed(e, () => load(into, get, show, { keep: true, signal })));
  }
}
