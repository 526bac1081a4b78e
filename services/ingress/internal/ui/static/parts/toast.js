import { h } from '../core/dom.js';
import { t } from '../core/i18n.js';

const box = h('div', { class: 'toasts' });
const polite = h('div', { class: 'sr', role: 'status', 'aria-live': 'polite', id: 'announcer' });
document.body.append(box, polite);

/** Says something to who listens to the page. */
export function announce(text) {
  polite.textContent = '';
  setTimeout(() => { polite.textContent = text; }, 30);
}

/** Tells what was done ('ok') or went wrong ('bad'), for a while. */
export function toast(text, kind = 'ok') {
  const element = h('div', { class: `toast ${kind}`, role: kind === 'bad' ? 'alert' : 'status' }, h('span', null, text),
    h('button', { class: 'link quiet', type: 'button', 'aria-label': t('action.close'), on: { click: () => element.remove() } }, '×'));
  box.append(element);
  setTimeout(() => element.remove(), kind === 'bad' ? 12_000 : 5000);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not allowed without https
    const area = h('textarea', { class: 'sr', value: text, 'aria-hidden': 'true' });
    (document.querySelector('dialog[open]') ?? document.body).append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  toast(t('action.copied'));
}

export const copyButton = (text, label = t('action.copy')) => h('button', { class: 'btn small', type: 'button', on: { click: () => copy(typeof text === 'function' ? text() : text) } }, label);
