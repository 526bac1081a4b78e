// Is it serving, and how: the first thing that an operator asks.
import { admin, withQuery } from '../core/api.js';
import { h, keyed, set } from '../core/dom.js';
import { client, compact, countdown, duration, money, number, percent } from '../core/format.js';
import { agentState, circuitState, openCircuits, providerState, summary } from '../core/health.js';
import { t, tn } from '../core/i18n.js';
import { link } from '../core/router.js';
import { asTable, latencyLines, requestBars, shares } from '../parts/chart.js';
import { keyMarks, slots, stateOf } from '../parts/marks.js';
import { empty, failed, loading } from '../parts/states.js';
import { announce } from '../parts/toast.js';
import { waterfallLegend } from '../parts/way.js';
import { requestTable } from './requesttable.js';
import { head, segments } from './shell.js';
import { webPanel } from './webpanel.js';

const ranges = { 900: 15, 3600: 60, 86400: 1800, 604800: 14400 }; // the step of each, in seconds
const LATEST = 10;

export const overview = { id: 'overview', letter: 'o', mount };

function mount({ root, params, live, on, signal, note }) {
  let filter = { range: params.range in ranges ? params.range : '3600', model: params.model ?? '', client: params.client ?? '' };
  let sums = null, latest = [];

  const pill = h('span', { data: { test: 'serving' } });
  let served = ''; // what the pill says
  const model = h('select', { 'aria-label': t('filter.model'), data: { test: 'model' }, on: { change: () => ask({ model: model.value }) } });
  const who = h('select', { 'aria-label': t('filter.client'), data: { test: 'client' }, on: { change: () => ask({ client: who.value }) } });
  const range = segments(t('overview.range'), Object.keys(ranges).map((r) => [r, t(`range.${r}`)]), filter.range, (r) => ask({ range: r }));
  const kpis = h('div', { class: 'grid w12', data: { test: 'kpis' } }, loading(3));
  const charts = h('div', { class: 'grid w12', data: { test: 'charts' } });
  const providers = h('div');
  const chains = h('div', { class: 'chainlist' });
  const latestTable = requestTable(t('overview.latest'));
  const latestBox = h('div', null, loading(5));
  const web = webPanel(signal);

  root.append(head(t('nav.overview'), pill, h('span', { class: 'spacer' }), model, who, range), h('div', { class: 'grid' }, kpis, charts,
    h('section', { class: 'panel w12', 'aria-labelledby': 'o-providers' }, h('h2', { id: 'o-providers' }, t('nav.providers'), h('small', { data: { test: 'healthy' } })), providers),
    h('section', { class: 'panel w12', 'aria-labelledby': 'o-chains' }, h('h2', { id: 'o-chains' }, t('overview.chains'), h('small', null, t('overview.chains.sub'))), chains),
    h('section', { class: 'panel w12', 'aria-labelledby': 'o-latest' }, h('h2', { id: 'o-latest' }, t('overview.latest'), h('small', null, t('overview.latest.sub'), ' ', h('a', { href: link('requests') }, t('overview.all')))),
      latestBox, waterfallLegend()), web.element));

  function ask(change) {
    filter = { ...filter, ...change };
    note(filter);
    read();
  }

  let reading = 0;
  async function read() {
    const mine = ++reading;
    try {
      const got = await admin(withQuery('timeline', { range: filter.range, step: ranges[filter.range], model: filter.model, client: filter.client }), { signal });
      if (mine !== reading || signal.aborted) return;
      sums = got;
      showSums();
    } catch (e) {
      if (e.name !== 'AbortError' && mine === reading && !signal.aborted) { set(kpis, h('div', { class: 'w12' }, failed(e, read))); set(charts); }
    }
  }

  async function readLatest() {
    try {
      const page = await admin(`requests?limit=${LATEST}`, { signal });
      latest = page.requests;
      showLatest();
    } catch (e) {
      if (e.name !== 'AbortError' && !signal.aborted) set(latestBox, failed(e, readLatest));
    }
  }

  function showSums() {
    choices(model, t('filter.allmodels'), sums.models.map((m) => [m.name, m.name || t('filter.unnamed')]), filter.model);
    choices(who, t('filter.allclients'), sums.clients.map((c) => [c.name, client(c.name)]), filter.client);
    showKpis(kpis, sums);
    showCharts(charts, sums, filter);
    showProviders();
  }

  /** Says whether the gateway serves, aloud when that has changed. */
  function showServing() {
    const now = summary(live);
    const sign = JSON.stringify([now.state, now.text, Math.round((now.until ?? 0) / 2000)]);
    if (sign === served) return;
    const said = served && JSON.parse(served)[1] !== now.text;
    served = sign;
    set(pill, serving(now));
    if (said) announce(now.text);
  }

  function showProviders() {
    showServing();
    const status = live.status;
    if (!status) { set(providers, live.faults.status ? failed(new Error(live.faults.status.message)) : loading(3)); return; }
    const ids = Object.keys(status.providers ?? {});
    root.querySelector('[data-test="healthy"]').textContent = t('overview.healthy', { n: ids.filter((id) => status.providers[id].healthy).length, all: ids.length });
    if (!ids.length) { set(providers, empty(t('overview.noproviders'), t('overview.noproviders.text'))); return; }
    if (!providers.querySelector('table')) set(providers, h('div', { class: 'scroll' }, providerTable()));
    const by = new Map((sums?.providers ?? []).map((p) => [p.name, p]));
    keyed(providers.querySelector('tbody'), ids.sort(), (id) => id, (id) => providerRow(status, id, by.get(id)),
      (id) => JSON.stringify([status.providers[id], status.agents?.[id], status.key_statistics?.[id]?.keys?.map((k) => [k.usable, k.status, k.cooldown_until, k.resting_models]), loadOf(status, id), openCircuits(status, id).map(([n, c]) => [n, c.state]), by.get(id)]));
    const models = Object.entries(status.chains ?? {}).sort();
    if (!models.length) set(chains, empty(t('overview.nochains'), t('overview.nochains.text')));
    else keyed(chains, models, ([name]) => name, ([name, list]) => chainRow(status, name, list), ([name, list]) => JSON.stringify([list, list.map((u) => [status.channels?.[u]?.usable, status.circuits?.[u]?.state])]));
  }

  function showLatest() {
    if (!latest.length) return void set(latestBox, empty(t('requests.none'), t('requests.none.text'), tryIt()));
    if (!latestBox.contains(latestTable.element)) set(latestBox, latestTable.element);
    latestTable.show(latest);
  }

  on('status', showProviders);
  on('fault', showProviders);
  on('connection', showProviders);
  on('requests', (news) => { latest = [...news.requests, ...latest.filter((r) => !news.requests.some((n) => n.number === r.number))].slice(0, LATEST); showLatest(); });
  on('refresh', () => { read(); readLatest(); web.read(); });
  const pause = Math.min(300, Math.max(10, ranges[filter.range] / 2));
  const timer = setInterval(() => { if (!document.hidden) { read(); web.read(); } }, pause * 1000);
  showProviders();
  read();
  readLatest();
  web.read();
  return { leave: () => clearInterval(timer) };
}

/** A command that makes a request. */
export const tryIt = () => `curl ${new URL('../v1/chat/completions', document.baseURI).href} -H 'Content-Type: application/json' -d '{"model": "auto", "messages": [{"role": "user", "content": "Hello"}]}'`;

function serving(s) {
  return h('span', { class: `pill ${s.state}` }, h('span', null, s.text, s.until && [' ', countdown(s.until)]));
}

function choices(select, all, options, current) {
  const list = options.some(([v]) => v === current) || !current ? options : [[current, current], ...options];
  set(select, h('option', { value: '' }, all), list.filter(([v]) => v).map(([v, text]) => h('option', { value: v }, text)));
  select.value = current;
}

function showKpis(into, { total, before, partial }) {
  const kpi = (id, label, value, ...below) => h('section', { class: 'panel kpi w3', data: { kpi: id } }, h('span', null, label), h('b', null, value), h('span', null, below));
  const change = before.requests ? (total.requests - before.requests) / before.requests : null;
  const later = total.first_token_p95_ms - before.first_token_p95_ms;
  const answered = total.requests - total.failed - total.cancelled;
  set(into,
    kpi('requests', t('kpi.requests'), number(total.requests), change === null ? t('kpi.nobefore') : change > 10 ? t('kpi.beforecount', { n: number(before.requests) })
      : [h('span', { class: 'delta' }, `${change >= 0 ? '+' : '−'}${number(Math.round(Math.abs(change) * 100))} %`), ' ', t('kpi.before')]),
    kpi('answered', t('kpi.answered'), percent(answered, total.requests - total.cancelled), t('kpi.failed', { failed: number(total.failed), saved: number(total.failover) })),
    kpi('latency', t('kpi.latency'), [duration(total.first_token_ms), h('small', null, ` / ${duration(total.first_token_p95_ms)}`)],
      before.first_token_p95_ms && total.first_token_p95_ms ? [h('span', { class: `delta ${later > 0 ? 'down' : 'up'}` }, `${later > 0 ? '+' : '−'}${duration(Math.abs(later)) === '–' ? 0 : duration(Math.abs(later))}`), ' ', t('kpi.p95before')] : t('kpi.nobefore')),
    kpi('tokens', t('kpi.tokens'), [compact(total.prompt_tokens), h('small', null, ` / ${compact(total.completion_tokens)}`)], total.cost === null ? t('kpi.noprice') : t('kpi.cost', { cost: money(total.cost) })),
    partial && h('p', { class: 'note w12' }, t('kpi.partial')));
}

function showCharts(into, sums, filter) {
  const open = [...into.querySelectorAll('details')].map((d) => d.open);
  const per = t('overview.per', { time: t(`step.${filter.range}`) });
  const legend = (cls, key) => h('span', null, h('i', { class: cls }), t(key));
  const panel = (cls, title, sub, ...content) => h('section', { class: `panel ${cls}` }, h('h2', null, title, h('small', null, sub)), content);
  const tokens = sums.models.map((m) => ({ name: m.name || t('filter.unnamed'), value: m.prompt_tokens + m.completion_tokens })).filter((m) => m.value);
  const byClient = sums.clients.map((c) => ({ name: client(c.name), value: c.prompt_tokens + c.completion_tokens })).filter((c) => c.value);
  set(into,
    panel('w8', t('kpi.requests'), per, requestBars(sums), h('div', { class: 'legend' }, legend('i1', 'legend.first'), legend('i2', 'legend.failover'), legend('i3', 'legend.failed'), legend('i0', 'legend.cancelled'),
      asTable(t('chart.requests'), sums, [[t('kpi.requests'), (p) => number(p.requests)], [t('legend.failover'), (p) => number(p.failover)], [t('legend.failed'), (p) => number(p.failed)], [t('legend.cancelled'), (p) => number(p.cancelled)], [t('kpi.tokens'), (p) => `${number(p.prompt_tokens)} / ${number(p.completion_tokens)}`]]))),
    panel('w4', t('overview.tokensby'), '', tokens.length ? [shares(tokens, compact, (n) => tn('overview.others', n)), usageTable(sums.models)] : empty(t('overview.notokens'))),
    panel('w8', t('chart.latency'), per, latencyLines(sums), h('div', { class: 'legend' }, legend('i1', 'legend.median'), legend('i4', 'legend.p95'),
      asTable(t('chart.latency'), sums, [[t('legend.median'), (p) => duration(p.first_token_ms)], [t('legend.p95'), (p) => duration(p.first_token_p95_ms)]]))),
    panel('w4', t('overview.clientsby'), '', byClient.length ? shares(byClient, compact, (n) => tn('overview.others', n)) : empty(t('overview.notokens'))));
  into.querySelectorAll('details').forEach((d, i) => { d.open = open[i] ?? false; });
}

/** All models with what they used, folded. */
function usageTable(models) {
  return h('details', { class: 'table' }, h('summary', null, t('chart.table')), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('overview.tokensby') }, h('table', null, h('thead', null, h('tr', null, ['col.model', 'overview.in', 'overview.out', 'col.requests', 'col.errors', 'request.cost'].map((key, i) => h('th', { scope: 'col', class: i ? 'num' : '' }, t(key))))),
    h('tbody', null, models.map((m) => h('tr', null, h('th', { scope: 'row' }, m.name || t('filter.unnamed')), [number(m.prompt_tokens), number(m.completion_tokens), number(m.requests), number(m.failed), money(m.cost)].map((text) => h('td', { class: 'num' }, text))))))));
}

function providerTable() {
  const col = (key, cls = '') => h('th', { scope: 'col', class: cls }, t(key));
  return h('table', { data: { test: 'providers' } }, h('thead', null, h('tr', null, col('col.provider'), col('col.state'), col('col.keys'), col('col.slots', 'hide'), col('col.requests', 'num hide'), col('col.firsttoken', 'num hide'), col('col.errors', 'num'))), h('tbody'));
}

const loadOf = (status, id) => {
  const own = (status.slots ?? []).filter((s) => status.channels?.[s.id]?.provider === id || s.id === id);
  return [own.reduce((n, s) => n + s.active, 0), own.some((s) => !s.limit) ? 0 : Math.max(0, ...own.map((s) => s.limit))];
};

function providerRow(status, id, sum) {
  const p = status.providers[id];
  const state = !p.total_keys && status.agents?.[id] ? agentState(status.agents[id]) : providerState(status, id);
  const [active, limit] = loadOf(status, id);
  return h('tr', { data: { provider: id } }, h('th', { scope: 'row' }, h('a', { class: 'name', href: link('providers', { id }) }, id), h('br'), h('span', { class: 'sub' }, tn('provider.models', p.models))),
    h('td', null, stateOf(state), openCircuits(status, id).map(([name, c]) => h('div', { class: 'sub' }, name, ': ', circuitText(c)))),
    h('td', null, keyMarks(status.key_statistics?.[id], p.total_keys)), h('td', { class: 'hide' }, slots(active, limit)),
    h('td', { class: 'num hide' }, sum ? number(sum.requests) : '–'), h('td', { class: 'num hide' }, sum ? duration(sum.first_token_ms) : '–'), h('td', { class: 'num' }, sum ? percent(sum.failed, sum.requests) : '–'));
}

function circuitText(c) {
  const state = circuitState(c);
  return [state.text, state.until && [' ', countdown(state.until)]];
}

function chainRow(status, name, list) {
  return h('div', { data: { chain: name } }, h('span', { class: 'name' }, name), h('span', { class: 'way' }, list.map((upstream, i) => {
    const channel = status.channels?.[upstream];
    const kind = !channel || channel.usable ? 'ok' : 'bad';
    return [i > 0 && h('span', { class: 'to', 'aria-hidden': 'true' }, '→'), h('span', { class: `chip ${kind}`, title: channel?.problem ?? '' }, upstream, kind === 'bad' && h('small', null, t('chain.out')))];
  })));
}
