// What went between the gateway and providers, while it is recorded: which model, how much, never the words.
import { admin } from '../../core/api.js';
import { h, set } from '../../core/dom.js';
import { clock } from '../../core/format.js';
import { t } from '../../core/i18n.js';
import { confirm } from '../../parts/dialog.js';
import { empty, load, words } from '../../parts/states.js';
import { toast } from '../../parts/toast.js';

export function commLog(signal) {
  const box = h('div', { data: { test: 'comm-log' } });
  const read = () => load(box, () => admin('comm-logs?limit=200', { signal }), show, { keep: true, signal });
  const details = h('details', { on: { toggle: () => { if (details.open) read(); } } }, h('summary', null, t('comm.show')), h('div', { class: 'row' }, h('button', { class: 'btn small', type: 'button', on: { click: read } }, t('action.refresh')),
    h('button', { class: 'btn small danger', type: 'button', on: { click: clear } }, t('action.clear'))), box);

  function show({ enabled, entries }) {
    const state = h('p', { class: 'muted' }, t(enabled ? 'comm.on' : 'comm.off'));
    if (!entries?.length) return [state, empty(t('comm.none'))];
    return [state, h('div', { class: 'scroll' }, h('table', null, h('thead', null, h('tr', null, ['col.time', 'comm.direction', 'col.provider', 'comm.payload'].map((k) => h('th', { scope: 'col' }, t(k))))), h('tbody', null, entries.map((e) => h('tr', null, h('td', { class: 'sub' }, clock(typeof e.ts === 'number' ? e.ts * (e.ts < 1e12 ? 1000 : 1) : e.ts)), h('td', null, e.direction), h('td', null, e.provider), h('td', { class: 'mono' }, JSON.stringify(e.payload)))))))];
  }

  async function clear() {
    if (!await confirm(t('comm.confirm'), t('action.clear'))) return;
    try {
      await admin('comm-logs', { method: 'DELETE' });
      set(box);
      read();
    } catch (e) { toast(words(e), 'bad'); }
  }
  return h('section', { class: 'panel' }, h('h2', null, t('comm.title'), h('small', null, t('comm.sub'))), details);
}
