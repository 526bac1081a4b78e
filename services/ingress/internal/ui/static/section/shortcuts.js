import { h } from '../core/dom.js';
import { t } from '../core/i18n.js';
import { dialog } from '../parts/dialog.js';

/** Tells the keys that there are. */
export function shortcuts(sections) {
  const key = (text) => h('kbd', { class: 'mono' }, text);
  dialog(t('keys.title'), [h('dl', null,
    h('dt', null, key('/')), h('dd', null, t('keys.search')),
    h('dt', null, key('Esc')), h('dd', null, t('keys.escape')),
    h('dt', null, key('?')), h('dd', null, t('keys.help')),
    sections.map((s) => [h('dt', null, key('g'), ' ', key(s.letter)), h('dd', null, t(`nav.${s.id}`))]))], { narrow: true, id: 'shortcuts' });
}
