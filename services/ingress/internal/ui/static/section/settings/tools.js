// Programs beside the gateway that it can install, if the operator allows that.
import { admin } from '../../core/api.js';
import { h } from '../../core/dom.js';
import { t } from '../../core/i18n.js';
import { confirm } from '../../parts/dialog.js';
import { load, words } from '../../parts/states.js';
import { toast } from '../../parts/toast.js';

export function tools(signal) {
  const box = h('div', { data: { test: 'tools' } });
  const read = () => load(box, () => admin('install/status', { signal }), show, { keep: true, signal });
  const show = (status) => h('div', null, Object.entries(status).filter(([, s]) => s && typeof s === 'object').map(([tool, s]) => h('div', { class: 'set' }, h('div', { class: 'row' }, h('span', { class: 'name' }, tool),
    h('span', { class: `state ${s.installed ? 'ok' : 'idle'}` }, s.installed ? t('tools.installed', { version: s.version || '' }) : t('tools.absent')), s.path && h('span', { class: 'sub mono' }, s.path)),
  h('button', { class: 'btn small', type: 'button', on: { click: (e) => install(tool, e.currentTarget) } }, t(s.installed ? 'tools.again' : 'tools.install')))));

  async function install(tool, button) {
    if (!await confirm(t('tools.confirm', { tool }), t('tools.install'))) return;
    button.disabled = true;
    try {
      const done = await admin(`install/${tool}`, { method: 'POST' });
      toast(done.message || t('tools.done', { tool }), done.success === false ? 'bad' : 'ok');
      read();
    } catch (e) { toast(words(e), 'bad'); }
    button.disabled = false;
  }
  const details = h('details', { on: { toggle: () => { if (details.open) read(); } } }, h('summary', null, t('tools.show')), box);
  return h('section', { class: 'panel' }, h('h2', null, t('tools.title'), h('small', null, t('tools.sub'))), details);
}
