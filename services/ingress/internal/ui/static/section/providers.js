// Providers: their keys, circuits, slots and models.
import { admin, ask } from '../core/api.js';
import { h, keyed, set } from '../core/dom.js';
import { countdown, number, when } from '../core/format.js';
import { agentState, circuitState, openCircuits, providerState } from '../core/health.js';
import { t, tn } from '../core/i18n.js';
import { confirm } from '../parts/dialog.js';
import { keyMarks, keyState, slots, stateOf } from '../parts/marks.js';
import { empty, failed, loading, words } from '../parts/states.js';
import { announce, toast } from '../parts/toast.js';
import { head } from './shell.js';

export const providers = { id: 'providers', letter: 'v', mount };

const SHOWN = 50; // models of a provider

function mount({ root, params, live, on, signal }) {
  let models = [];
  const box = h('div', { class: 'stack', data: { test: 'providers' } }, loading(6));
  const act = (test, key, run) => h('button', { class: 'btn small', type: 'button', data: { test }, on: { click: (e) => busy(e.currentTarget, run) } }, t(key));
  root.append(head(t('nav.providers'), h('span', { class: 'spacer' }), act('probe', 'providers.probe', () => probe(false)), act('force', 'providers.force', () => probe(true)), act('refresh', 'providers.refresh', refresh)),
    h('p', { class: 'note', data: { test: 'tos' } }, t('tos.notice')), h('br'), box);

  async function busy(button, run) {
    button.disabled = true;
    try { await run(); } catch (e) { toast(words(e), 'bad'); }
    button.disabled = false;
  }

  async function probe(force) {
    const found = await admin(force ? 'probe?force=true' : 'probe', { method: 'POST' });
    toast(t('providers.probed', { probed: number(found.probed), recovered: number(found.recovered), failed: number(found.failed), resting: number(found.resting) }));
  }

  async function refresh() {
    await admin('refresh-models', { method: 'POST' });
    toast(t('providers.refreshed'));
    readModels();
  }

  async function readModels() {
    try {
      models = (await ask('v1/models', { signal })).data;
      show();
    } catch { /* they are left out */ }
  }

  function show() {
    const { status } = live;
    if (!status) {
      if (live.faults.status) set(box, failed(new Error(live.faults.status.message)));
      return;
    }
    const ids = [...new Set([...Object.keys(status.providers ?? {}), ...Object.keys(status.agents ?? {})])].sort();
    if (!ids.length) { set(box, empty(t('overview.noproviders'), t('overview.noproviders.text'))); return; }
    if (box.querySelector('.skeleton, .empty, .error')) set(box);
    keyed(box, ids, (id) => id, (id) => card(status, id, models.filter((m) => m.owned_by === id)), (id) => JSON.stringify([id, models.length]));
    for (const id of ids) update(box, status, id);
  }

  on('status', show);
  on('fault', show);
  on('refresh', readModels);
  show();
  readModels();
  if (params.id) requestAnimationFrame(() => document.getElementById(`provider-${params.id}`)?.scrollIntoView());
  return { update: (p) => document.getElementById(`provider-${p.id}`)?.scrollIntoView() };
}

/** The parts of a provider that do not change while it is looked at; the rest is filled in by update. */
function card(status, id, models) {
  const part = (name) => h('div', { data: { part: name } });
  const pooled = Boolean(status.key_statistics?.[id]);
  return h('section', { class: 'panel', id: `provider-${id}`, 'aria-label': id, data: { provider: id } }, h('h2', null, id, part('state'), h('span', { class: 'spacer' }), part('marks')), part('facts'), part('keys'), pooled && addKeys(id),
    h('details', null, h('summary', null, tn('provider.models', models.length || status.providers?.[id]?.models || 0)), models.length ? modelTable(models) : h('p', { class: 'muted' }, t('provider.nomodels'))));
}

function update(box, status, id) {
  const root = box.querySelector(`[data-provider="${CSS.escape(id)}"]`);
  const put = (name, sign, ...content) => {
    const part = root.querySelector(`[data-part="${name}"]`);
    const text = JSON.stringify(sign);
    if (part.signature === text) return;
    part.signature = text;
    set(part, content);
  };
  const p = status.providers?.[id], statistics = status.key_statistics?.[id];
  const state = p ? providerState(status, id) : agentState(status.agents[id]);
  put('state', [state.state, state.text, Math.round((state.until ?? 0) / 2000)], stateOf(state));
  put('marks', [statistics?.keys?.map(keyState), p?.total_keys], keyMarks(statistics, p?.total_keys));
  const channels = Object.entries(status.channels ?? {}).filter(([, c]) => c.provider === id);
  const load = (status.slots ?? []).filter((s) => channels.some(([name]) => name === s.id) || s.id === id);
  const open = openCircuits(status, id);
  const queues = (status.queues ?? []).filter((q) => (status.chains?.[q.model] ?? []).some((name) => channels.some(([own]) => own === name)));
  put('facts', [channels.map(([n, c]) => [n, c.usable, c.problem, c.last_error?.at]), load, queues, open.map(([n, c]) => [n, c.state, Math.round(c.remaining / 2e9)])], channels.length ? channelTable(status, channels, load) : null, queues.map(queueOf), status.agents?.[id] && h('p', { class: 'sub mono' }, status.agents[id].base_url));
  put('keys', statistics?.keys?.map((k) => [k.index, k.id, keyState(k), k.usage, k.failures, k.cooldown_until, k.resting_models, k.last_error?.at]), statistics?.keys?.length ? keyTable(id, statistics.keys) : null);
}

const wide = ['col.lasterror', 'col.tier', 'col.failures', 'model.tier', 'model.price']; // columns that a phone has no room for

const cols = (keys, from) => h('thead', null, h('tr', null, keys.map((key, i) => h('th', { scope: 'col', class: `${i >= from ? 'num' : ''} ${wide.includes(key) ? 'hide' : ''}` }, key ? t(key) : h('span', { class: 'sr' }, t('col.actions'))))));

function channelTable(status, channels, load) {
  return h('div', { class: 'scroll' }, h('table', null, cols(['col.channel', 'col.circuit', 'col.slots', 'col.lasterror'], 9), h('tbody', null, channels.map(([name, c]) => {
    const circuit = status.circuits?.[name], s = load.find((l) => l.id === name), state = circuit && circuitState(circuit);
    return h('tr', null, h('th', { scope: 'row' }, h('span', { class: 'name' }, name.startsWith('provider:') ? t('provider.routed') : name)), h('td', null, state ? stateOf(state) : '–', circuit?.failures ? h('span', { class: 'sub' }, ' ', tn('circuit.failures', circuit.failures)) : ''),
      h('td', null, s ? slots(s.active, s.limit) : '–'), h('td', { class: 'sub hide' }, c.last_error ? errorText(c.last_error) : c.problem || '–'));
  }))));
}

/** Who waits for a model: how many, of how many may, and the first ones by their places. */
const queueOf = (q) => h('p', { class: 'sub', data: { test: 'queue' } }, t('queue.waits', { model: q.model, n: number(q.waiting), limit: number(q.length) }),
  q.requests.slice(0, 5).map((r) => h('span', { class: 'mono' }, ` ${r.position}. ${r.request_id}`, r.priority === 'normal' ? '' : ` (${r.priority})`)));

const errorText = (e) => [when(e.at), ': ', [e.error, e.reason, e.status ? `HTTP ${e.status}` : '', e.model].filter(Boolean).join(', ')];

function keyTable(provider, keys) {
  return h('details', { open: keys.length <= 8 }, h('summary', null, tn('provider.keys', keys.length)), h('div', { class: 'scroll' }, h('table', { data: { test: 'keys' } }, cols(['col.key', 'col.state', 'col.tier', 'col.calls', 'col.failures', 'col.lasterror', ''], 3), h('tbody', null, keys.map((k) => h('tr', null,
    h('th', { scope: 'row', class: 'mono' }, `${k.index + 1}: ${k.id}`), h('td', null, h('i', { class: `key ${keyState(k)}`, 'aria-hidden': 'true', style: { display: 'inline-block' } }), ' ', keyText(k)), h('td', { class: 'hide' }, k.tier === 'unknown' ? '–' : k.tier),
    h('td', { class: 'num' }, number(k.usage)), h('td', { class: 'num hide' }, number(k.failures)), h('td', { class: 'sub num hide' }, k.last_error ? errorText(k.last_error) : '–'),
    h('td', { class: 'num' }, h('button', { class: 'link quiet', type: 'button', 'aria-label': t('keys.removethis', { n: k.index + 1, provider }), on: { click: () => removeKey(provider, k) } }, t('action.remove')))))))));
}

function keyText(k) {
  const state = keyState(k);
  if (state === 'ok') return t('key.usable');
  if (state === 'dead') return t('key.refused');
  const until = k.cooldown_remaining > 0 ? k.cooldown_until : k.model_cooldowns?.[0]?.cooldown_until;
  return [k.resting_models?.length && !(k.cooldown_remaining > 0) ? t('key.restsfor', { models: k.resting_models.join(', ') }) : t('key.rests'), until && [' ', countdown(until)]];
}

async function removeKey(provider, key) {
  if (!await confirm(t('keys.confirm', { id: key.id, provider }), t('action.remove'))) return;
  try {
    await admin('keys', { method: 'DELETE', body: { provider, index: key.index, id: key.id } });
    toast(t('keys.removed'));
  } catch (e) { toast(words(e), 'bad'); }
}

function addKeys(provider) {
  const input = h('textarea', { rows: 2, autocomplete: 'off', spellcheck: 'false', required: true, 'aria-label': t('keys.add', { provider }), placeholder: t('keys.each'), data: { test: 'new-keys' } });
  const form = h('form', { class: 'row', on: { submit: async (e) => {
    e.preventDefault();
    const keys = input.value.split(/[\s,]+/).filter(Boolean);
    if (!keys.length) return;
    try {
      const { added_count: n } = await admin('keys', { body: { provider, keys } });
      input.value = '';
      toast(tn('keys.added', n));
      announce(tn('keys.added', n));
    } catch (err) { toast(words(err), 'bad'); }
  } } }, input, h('button', { class: 'btn small', type: 'submit', data: { test: 'add-keys' } }, t('action.add')));
  return h('details', { data: { test: 'add-keys-form' } }, h('summary', null, t('keys.addmore')), form);
}

function modelTable(models) {
  const yes = (v) => (v === null || v === undefined ? '–' : t(v ? 'answer.yes' : 'answer.no'));
  return h('div', { class: 'scroll' }, h('table', null, cols(['col.model', 'model.tier', 'model.context', 'model.images', 'model.price'], 2), h('tbody', null, models.slice(0, SHOWN).map((m) => h('tr', null, h('th', { scope: 'row', class: 'mono' }, m.id), h('td', { class: 'hide' }, m.tier === 'unknown' ? '–' : m.tier),
    h('td', { class: 'num' }, m.capabilities?.max_tokens ? number(m.capabilities.max_tokens) : '–'), h('td', { class: 'num' }, yes(m.capabilities?.multimodal)), h('td', { class: 'num hide' }, m.capabilities?.cost_per_token ?? '–'))))),
  models.length > SHOWN && h('p', { class: 'sub' }, t('sessions.more', { n: number(models.length - SHOWN) })));
}
