// Keys for people and programs, each with its limits.
import { admin } from '../core/api.js';
import { h, keyed, set } from '../core/dom.js';
import { compact, dateTime, learnClients, money, number } from '../core/format.js';
import { t, tn } from '../core/i18n.js';
import { link } from '../core/router.js';
import { confirm, dialog } from '../parts/dialog.js';
import { empty, failed, loading, words } from '../parts/states.js';
import { copyButton, toast } from '../parts/toast.js';
import { head } from './shell.js';

export const clientKeys = { id: 'clientkeys', letter: 'k', mount };

/**
 * @typedef {{id: string, name: string, allowed_models?: string[], limits?: {rpm?: number, tpm?: number}, budget?: {amount: number, unit: 'tokens'|'money', period: 'day'|'month', used: number},
 *   priority?: 'high'|'normal'|'low', expires_at?: string, created_at: string, revoked?: boolean}} ClientKey
 */

const STEP = 200; // that are shown at once

function mount({ root, on, signal }) {
  let keys = [], term = '', shown = STEP;
  const box = h('div', { data: { test: 'client-keys' } }, loading(5));
  const col = (key, cls = '') => h('th', { scope: 'col', class: cls }, t(key));
  const body = h('tbody');
  const table = h('div', { class: 'scroll' }, h('table', null, h('thead', null, h('tr', null, col('ck.name'), col('ck.models', 'hide'), col('ck.limits'), col('ck.budget'), col('ck.expires', 'hide'), h('th', { scope: 'col' }, h('span', { class: 'sr' }, t('col.actions'))))), body));
  const count = h('p', { class: 'sub', role: 'status' });
  const make = h('button', { class: 'btn main', type: 'button', data: { test: 'make-key' }, on: { click: () => form(null) } }, t('ck.make'));
  const search = h('input', { type: 'search', placeholder: t('ck.search'), 'aria-label': t('ck.search'), data: { test: 'search' }, on: { input: () => { term = search.value.toLowerCase(); shown = STEP; show(); } } });
  const next = h('button', { class: 'btn', type: 'button', hidden: true, on: { click: () => { shown += STEP; show(); } } }, t('action.more'));
  root.append(head(t('nav.clientkeys'), count, h('span', { class: 'spacer' }), make), h('section', { class: 'panel', 'aria-label': t('nav.clientkeys') }, h('div', { class: 'filters' }, search), box, next));

  async function read() {
    try {
      const got = await admin('client-keys', { signal });
      keys = Array.isArray(got) ? got : got.keys ?? got.data ?? [];
      learnClients(keys);
      make.disabled = false;
      show();
    } catch (e) {
      if (e.name === 'AbortError' || signal.aborted) return;
      make.disabled = e.status === 404;
      set(box, e.status === 404 ? h('div', { data: { state: 'missing' } }, empty(t('ck.missing'), t('ck.missing.text'))) : failed(e, read));
    }
  }

  function show() {
    const found = keys.filter((k) => !term || `${k.name} ${k.id}`.toLowerCase().includes(term));
    count.textContent = tn('ck.count', found.length);
    next.hidden = found.length <= shown;
    if (!found.length) { set(box, keys.length ? empty(t('ck.nomatch')) : empty(t('ck.none'), t('ck.none.text'))); return; }
    if (!box.contains(table)) set(box, table);
    keyed(body, found.slice(0, shown), (k) => k.id, row);
  }

  /** @param {ClientKey} k */
  function row(k) {
    const limits = [k.limits?.rpm && t('ck.rpm', { n: number(k.limits.rpm) }), k.limits?.tpm && t('ck.tpm', { n: compact(k.limits.tpm) }), k.priority && t(`priority.${k.priority}`)].filter(Boolean);
    const expired = k.expires_at && new Date(k.expires_at) < new Date();
    return h('tr', { data: { key: k.id } }, h('th', { scope: 'row' }, h('a', { class: 'name', href: link('requests', { client: k.id }) }, k.name), h('br'), h('span', { class: 'sub mono' }, k.id), k.revoked && h('span', { class: 'state bad' }, t('ck.revoked'))),
      h('td', { class: 'hide' }, k.allowed_models?.length ? k.allowed_models.join(', ') : t('ck.allmodels')), h('td', null, limits.length ? limits.join(', ') : t('ck.nolimit')), h('td', null, budget(k.budget)),
      h('td', { class: 'hide' }, k.expires_at ? h('span', { class: expired ? 'state bad' : '' }, dateTime(k.expires_at)) : t('ck.never')), h('td', { class: 'num' }, !k.revoked && h('span', { class: 'row' }, act('edit', 'ck.edit', () => form(k)), act('rotate', 'ck.rotate', () => rotate(k)), act('revoke', 'ck.revoke', () => revoke(k), 'danger'))));
  }

  const act = (test, key, run, kind = '') => h('button', { class: `btn small ${kind}`, type: 'button', data: { test }, on: { click: run } }, t(key));

  function budget(b) {
    if (!b?.amount) return t('ck.nobudget');
    const text = b.unit === 'tokens' ? compact : money, used = b.used ?? 0;
    return [h('span', null, t('ck.used', { used: text(used), amount: text(b.amount), period: t(`period.${b.period}`) })), h('span', { class: 'track', 'aria-hidden': 'true' }, h('i', { class: used >= b.amount ? 'over' : '', style: { width: `${Math.min(100, (used / b.amount) * 100)}%` } }))];
  }

  async function revoke(k) {
    if (!await confirm(t('ck.confirm', { name: k.name }), t('ck.revoke'))) return;
    try {
      await admin(`client-keys/${encodeURIComponent(k.id)}`, { method: 'DELETE' });
      toast(t('ck.isrevoked'));
      read();
    } catch (e) { toast(words(e), 'bad'); }
  }

  /** Gives a key another secret; its name, limits and use stay. */
  async function rotate(k) {
    if (!await confirm(t('ck.confirmrotate', { name: k.name }), t('ck.rotate'))) return;
    try {
      const made = await admin(`client-keys/${encodeURIComponent(k.id)}/rotate`, { method: 'POST' });
      once(made.key, k.name);
    } catch (e) { toast(words(e), 'bad'); }
  }

  /** Asks for what a key may do: a new one, or one that is there. @param {ClientKey | null} k */
  function form(k) {
    const input = (props, value) => h('input', { ...props, value: value ?? '' });
    const name = input({ required: true, maxlength: 64, autocomplete: 'off', data: { test: 'key-name' } }, k?.name), models = input({ placeholder: t('ck.allmodels'), data: { test: 'key-models' } }, k?.allowed_models?.join(', '));
    const count = (test, value) => input({ type: 'number', min: 1, data: { test } }, value);
    const rpm = count('rpm', k?.limits?.rpm), tpm = count('tpm', k?.limits?.tpm), amount = input({ type: 'number', min: 0, step: 'any', data: { test: 'budget' } }, k?.budget?.amount);
    const choice = (test, ids, prefix, value) => { const e = h('select', { data: { test } }, ids.map((id) => h('option', { value: id }, t(`${prefix}.${id}`)))); if (value) e.value = value; return e; };
    const unit = choice('unit', ['tokens', 'money'], 'unit', k?.budget?.unit), period = choice('period', ['day', 'month'], 'period', k?.budget?.period), priority = choice('priority', ['any', 'high', 'normal', 'low'], 'priority', k?.priority), expires = input({ type: 'date', data: { test: 'expires' } }, k?.expires_at?.slice(0, 10));
    const problem = h('div', { role: 'alert' });
    const field = (label, element) => h('label', { class: 'field' }, t(label), element);
    const title = k ? t('ck.editing', { name: k.name }) : t('ck.make');
    const box = dialog(title, [h('form', { class: 'stack', on: { submit: (e) => { e.preventDefault(); save(); } } }, field('ck.name', name), field('ck.models', models), h('div', { class: 'form' }, field('ck.rpmlabel', rpm), field('ck.tpmlabel', tpm)), h('div', { class: 'form' }, field('ck.budget', amount), field('ck.unit', unit), field('ck.period', period)), h('div', { class: 'form' }, field('ck.priority', priority), field('ck.expires', expires)), problem,
      h('div', { class: 'actions' }, h('button', { class: 'btn main', type: 'submit', data: { test: k ? 'save-key' : 'create-key' } }, t(k ? 'action.save' : 'ck.create'))))], { narrow: true, id: 'make-key' });
    name.focus();

    async function save() {
      const all = {
        name: name.value.trim(), allowed_models: models.value.split(/[\s,]+/).filter(Boolean), limits: { ...(rpm.value && { rpm: Number(rpm.value) }), ...(tpm.value && { tpm: Number(tpm.value) }) },
        budget: Number(amount.value) > 0 ? { amount: Number(amount.value), unit: unit.value, period: period.value } : null, priority: priority.value === 'any' ? null : priority.value,
        expires_at: expires.value ? new Date(`${expires.value}T23:59:59`).toISOString() : null,
      };
      if (!all.allowed_models.length) all.allowed_models = null;
      if (!Object.keys(all.limits).length) all.limits = null;
      const body = k ? all : Object.fromEntries(Object.entries(all).filter(([, v]) => v !== null)); // null takes a limit away
      try {
        const made = await admin(k ? `client-keys/${encodeURIComponent(k.id)}` : 'client-keys', { method: k ? 'PATCH' : 'POST', body });
        box.close();
        if (k) toast(t('settings.saved'));
        else once(made.key, body.name);
        read();
      } catch (e) { set(problem, failed(e)); }
    }
  }

  on('refresh', read);
  read();
}

/** Shows a key, which nobody can see again. */
function once(key, name) {
  dialog(t('ck.made', { name }), [h('p', null, t('ck.once')), h('div', { class: 'copy' }, h('pre', { data: { test: 'made-key' }, tabindex: '0' }, key), copyButton(key)),
    h('p', { class: 'muted' }, t('ck.use')), h('pre', { tabindex: '0' }, `OPENAI_BASE_URL=${new URL('../v1', document.baseURI).href}\nOPENAI_API_KEY=${key}`)], { narrow: true, id: 'made-key' });
}
