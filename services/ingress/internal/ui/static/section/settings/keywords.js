// Words that tell that a question needs the web.
import { admin } from '../../core/api.js';
import { h } from '../../core/dom.js';
import { t, tn } from '../../core/i18n.js';
import { load, words } from '../../parts/states.js';
import { toast } from '../../parts/toast.js';

export function keywords(signal) {
  const box = h('div', { data: { test: 'keywords' } });
  const read = () => load(box, () => admin('intent/keywords', { signal }), show, { keep: true, signal });
  const show = (lists) => h('div', { class: 'stack' }, ['ko', 'en'].map((lang) => {
    const input = h('input', { required: true, 'aria-label': t('keywords.add', { lang }), placeholder: t('keywords.each') });
    return h('div', null, h('h3', { lang }, lang), h('p', { class: 'muted', lang }, (lists[lang] ?? []).join(', ') || '–'), h('form', { class: 'row', on: { submit: (e) => { e.preventDefault(); add(lang, input); } } }, input, h('button', { class: 'btn small', type: 'submit' }, t('action.add'))));
  }));

  async function add(lang, input) {
    try {
      const { added = [] } = await admin('intent/keywords', { body: { lang, keywords: input.value.split(',').map((w) => w.trim()).filter(Boolean) } });
      toast(tn('keywords.added', added.length));
      read();
    } catch (e) { toast(words(e), 'bad'); }
  }
  const details = h('details', { on: { toggle: () => { if (details.open) read(); } } }, h('summary', null, t('keywords.show')), box);
  return h('section', { class: 'panel' }, h('h2', null, t('keywords.title'), h('small', null, t('keywords.sub'))), details);
}
