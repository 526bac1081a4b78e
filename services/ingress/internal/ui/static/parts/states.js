// How a place looks that has nothing to show yet, or nothing at all, or can't.
import { ApiError } from '../core/api.js';
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

/** What went wrong, with the id to search for. */
export function failed(error, retry) {
  if (isMissing(error)) return h('div', { data: { state: 'missing' } }, empty(t('error.route')));
  return h('div', { class: 'error', role: 'alert', data: { state: 'error' } }, h('strong', null, words(error)),
    error.id && h('span', { class: 'sub' }, t('error.id', { id: error.id })),
    retry && h('button', { class: 'btn small', type: 'button', on: { click: retry } }, t('action.retry')));
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
    into.replaceChildren(failed(e, () => load(into, get, show, { signal })));
  }
}
