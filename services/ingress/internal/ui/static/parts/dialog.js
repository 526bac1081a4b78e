import { h, newId } from '../core/dom.js';
import { t } from '../core/i18n.js';

/**
 * Opens a dialog. The focus goes back to where it was when it closes.
 * @param {string} title
 * @param {any[]} content
 * @param {{narrow?: boolean, closed?: () => void, id?: string}} [options]
 */
export function dialog(title, content, { narrow = false, closed, id } = {}) {
  const label = newId('dialog');
  const element = h('dialog', { class: narrow ? 'narrow' : '', 'aria-labelledby': label, data: { dialog: id ?? '' } },
    h('div', { class: 'in' },
      h('div', { class: 'bar' }, h('h2', { id: label, tabindex: '-1' }, title),
        h('button', { class: 'btn small', type: 'button', on: { click: () => element.close() } }, t('action.close'))),
      content));
  element.addEventListener('close', () => { element.remove(); closed?.(); });
  element.addEventListener('click', (e) => { if (e.target === element) element.close(); });
  document.body.append(element);
  element.showModal();
  element.querySelector('h2').focus();
  return element;
}

/** Asks before something is done that can't be undone. */
export function confirm(text, label) {
  return new Promise((done) => {
    let answer = false;
    const box = dialog(t('confirm.title'), [h('p', null, text), h('div', { class: 'actions' },
      h('button', { class: 'btn', type: 'button', on: { click: () => box.close() } }, t('action.cancel')),
      h('button', { class: 'btn danger', type: 'button', data: { test: 'confirm' }, on: { click: () => { answer = true; box.close(); } } }, label))],
    { narrow: true, closed: () => done(answer), id: 'confirm' });
  });
}
