// Settings that can be changed while the gateway runs, and what else is set up here.
import { admin } from '../core/api.js';
import { h, set } from '../core/dom.js';
import { t } from '../core/i18n.js';
import { empty, failed, load, words } from '../parts/states.js';
import { toast } from '../parts/toast.js';
import { commLog } from './settings/commlog.js';
import { keywords } from './settings/keywords.js';
import { tools } from './settings/tools.js';
import { onboarding } from './onboarding.js';
import { head, languageSwitch, themeSwitch } from './shell.js';

export const settings = { id: 'settings', letter: 't', mount };

function mount({ root, on, signal }) {
  const live = h('div', { data: { test: 'settings' } }), reloaded = h('div', { role: 'status' });
  const panel = (title, sub, ...content) => h('section', { class: 'panel' }, h('h2', null, title, sub && h('small', null, sub)), content);
  const reload = h('button', { class: 'btn', type: 'button', data: { test: 'reload' }, on: { click: readAgain } }, t('settings.reload'));
  root.append(head(t('nav.settings')), h('div', { class: 'stack' },
    panel(t('settings.here'), t('settings.here.sub'), h('div', { class: 'row' }, languageSwitch(), themeSwitch(), h('button', { class: 'btn small', type: 'button', data: { test: 'onboarding' }, on: { click: () => onboarding() } }, t('settings.onboarding')))),
    panel(t('settings.live'), t('settings.live.sub'), live), panel(t('settings.file'), '', h('p', { class: 'muted' }, t('settings.file.text')), reload, reloaded),
    commLog(signal), tools(signal), keywords(signal), panel(t('tos.title'), '', h('p', null, t('tos.notice')))));

  const read = () => load(live, () => admin('settings', { signal }), show, { keep: true, signal });

  function show(now) {
    const list = now.settings?.length ? now.settings : ['locale', 'debug_comm_log', 'session_retention_days', 'max_tokens_fast_model', 'provider_priority'].filter((name) => name in now).map((name) => ({ name, value: now[name] }));
    return list.length ? h('div', null, list.map((s) => one(s))) : empty(t('settings.none'));
  }

  /** One setting: what it is, where that comes from, and how to change it. */
  function one(s) {
    const origin = s.origin && h('span', { class: 'chip' }, t(`origin.${s.origin}`));
    const label = h('label', { for: `set-${s.name}`, class: 'mono' }, s.name);
    const change = async (value) => {
      try {
        await admin('settings', { method: 'PUT', body: { [s.name]: value } });
        toast(t('settings.saved'));
        read();
      } catch (e) { toast(words(e), 'bad'); }
    };
    return h('div', { class: 'set', data: { setting: s.name } }, h('div', { class: 'row' }, label, origin), h('div', { class: 'row' }, control(s, change), s.origin === 'stored' && h('button', { class: 'link quiet', type: 'button', on: { click: () => change(null) } }, t('settings.restore'))));
  }

  function control(s, change) {
    const id = `set-${s.name}`;
    if (typeof s.value === 'boolean') return h('input', { id, type: 'checkbox', checked: s.value, on: { change: (e) => change(e.target.checked) } });
    if (/(^|\.)locale$/.test(s.name)) {
      const select = h('select', { id, on: { change: () => change(select.value) } }, ['ko', 'en'].map((code) => h('option', { value: code }, code)));
      select.value = s.value;
      return select;
    }
    const simple = typeof s.value === 'string' || typeof s.value === 'number';
    const words_ = Array.isArray(s.value) && s.value.every((v) => typeof v === 'string');
    const text = simple ? String(s.value) : words_ ? s.value.join(', ') : JSON.stringify(s.value);
    const input = h('input', { id, value: text, type: typeof s.value === 'number' ? 'number' : 'text', step: 'any' });
    const save = () => {
      if (input.value === text) return;
      if (typeof s.value === 'number') return change(Number(input.value));
      if (simple) return change(input.value);
      if (words_) return change(input.value.split(',').map((w) => w.trim()).filter(Boolean));
      try { change(JSON.parse(input.value)); } catch { toast(t('settings.notjson'), 'bad'); }
    };
    input.addEventListener('keydown', (e) => { if (e.key === 'Enter') save(); });
    return h('span', { class: 'row' }, input, h('button', { class: 'btn small', type: 'button', on: { click: save } }, t('action.save')));
  }

  async function readAgain() {
    reload.disabled = true;
    try {
      const answer = await admin('reload', { method: 'POST' });
      set(reloaded, outcome(answer));
      read();
    } catch (e) { set(reloaded, failed(e)); }
    reload.disabled = false;
  }

  on('refresh', read);
  read();
}

/** What each service made of the file. */
function outcome({ status, instances = [] }) {
  const list = (key, words_, kind) => words_?.length ? h('div', null, h('span', { class: `state ${kind}` }, t(key)), ' ', h('span', { class: 'mono' }, words_.join(', '))) : null;
  const same = (i) => !i.error && !i.applied?.length && !i.needs_restart?.length && !i.refused?.length;
  return [h('h3', null, t(status === 'refused' ? 'settings.refusedfile' : 'settings.reloaded')), h('div', { class: 'scroll' }, h('table', { data: { test: 'reloaded' } }, h('tbody', null, instances.map((i) => h('tr', null, h('th', { scope: 'row', class: 'mono' }, i.id),
    h('td', null, same(i) ? h('span', { class: 'muted' }, t('settings.same')) : [list('settings.applied', i.applied, 'ok'), list('settings.restart', i.needs_restart, 'warn'), list('settings.refused', i.refused, 'bad'), i.error && list('settings.noanswer', [i.error], 'bad')]))))))];
}
