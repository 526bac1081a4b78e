// All that is known of a request.
import { address } from '../core/api.js';
import { h } from '../core/dom.js';
import { client, dateTime, duration, money, number } from '../core/format.js';
import { known, t, tn } from '../core/i18n.js';
import { go, link } from '../core/router.js';
import { dialog } from '../parts/dialog.js';
import { copyButton } from '../parts/toast.js';
import { begun, callBar, reason, way, waterfall, waterfallLegend } from '../parts/way.js';

/** What became of a request, in words. */
export function statusText(status) {
  if (status === 'success' || status === 'cancelled') return t(`status.${status}`);
  return t('status.failed', { reason: status.replace(/^error: /, '').replaceAll('_', ' ').toLowerCase() });
}

export const reasonText = (text) => (known(`reason.${text}`) ? t(`reason.${text}`) : text || '–');

const paths = { 'chat.completions': 'v1/chat/completions', messages: 'v1/messages', responses: 'v1/responses', completions: 'v1/completions', embeddings: 'v1/embeddings' };

/** A command that asks the same model in the same way. What was asked is not kept. */
function curl(r) {
  const path = paths[r.endpoint] ?? `v1/${r.endpoint.replaceAll('.', '/')}`;
  const body = r.endpoint === 'responses' ? { model: r.model, input: '...' } : r.endpoint === 'embeddings' ? { model: r.model, input: '...' }
    : r.endpoint === 'completions' ? { model: r.model, prompt: '...' } : { model: r.model, ...(r.endpoint === 'messages' && { max_tokens: 1024 }), messages: [{ role: 'user', content: '...' }] };
  if (r.stream) body.stream = true;
  return `curl ${r.stream ? '-N ' : ''}${quote(address(path))} -H 'Content-Type: application/json' -H "Authorization: Bearer $HYDRALLM_KEY" -d ${quote(JSON.stringify(body))}`;
}

/** A word of a shell. */
export const quote = (text) => (/^[\w:/.=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

export function details(r) {
  const cost = r.calls?.some((c) => c.cost !== null) ? money(r.calls.reduce((n, c) => n + (c.cost ?? 0), 0)) : t('kpi.noprice');
  const entry = (key, ...value) => [h('dt', null, t(key)), h('dd', null, value)];
  const box = dialog(t('request.title', { model: r.model }), [
    h('div', { class: 'stack' }, way(r), waterfall(r, true), waterfallLegend()),
    h('dl', { data: { test: 'request-details' } },
      entry('col.status', statusText(r.status)), entry('request.began', dateTime(begun(r))), entry('request.reason', reasonText(r.routing_reason)),
      entry('request.answered', r.provider ? `${r.provider}, ${r.upstream_model}, ${t('request.key', { n: r.key_index + 1 })}` : '–'),
      entry('col.firsttoken', duration(r.first_token_ms)), entry('col.total', duration(r.latency_ms)),
      entry('kpi.tokens', `${number(r.prompt_tokens)} / ${number(r.completion_tokens)}`), entry('request.cost', cost),
      entry('filter.client', client(r.principal)), entry('request.endpoint', h('span', { class: 'mono' }, r.endpoint), r.stream ? `, ${t('request.stream')}` : ''),
      r.session_id && entry('request.session', h('a', { href: link('sessions', { id: r.session_id }), on: { click: () => box.close() } }, r.session_id)),
      entry('request.id', h('span', { class: 'mono' }, r.request_id), ' ', copyButton(r.request_id)),
      r.trace_id && entry('request.trace', h('a', { class: 'mono', href: link('requests', { request_id: r.trace_id }), data: { test: 'trace' }, on: { click: () => box.close() } }, r.trace_id), ' ', copyButton(r.trace_id))),
    h('section', null, h('h3', null, t('request.calls')), r.calls?.length ? calls(r) : h('p', { class: 'muted' }, t('request.nocalls'))),
    h('div', { class: 'actions' },
      h('a', { class: 'btn', href: link('logs', { request_id: r.request_id }), on: { click: () => box.close() } }, t('request.logs')),
      copyButton(() => curl(r), t('action.curl')),
      h('button', { class: 'btn main', type: 'button', data: { test: 'replay' }, on: { click: () => { box.close(); go('playground', { model: r.model, session: r.session_id ?? '' }); } } }, t('request.replay'))),
  ], { id: 'request' });
}

function calls(r) {
  const start = begun(r);
  return h('div', { class: 'scroll' }, h('table', null, h('thead', null, h('tr', null, ['col.upstream', 'col.model', 'col.outcome', 'col.where', 'col.after', 'col.took', 'kpi.tokens', 'request.cost'].map((key, i) => h('th', { scope: 'col', class: i > 3 ? 'num' : '' }, t(key))))),
    h('tbody', null, r.calls.map((c) => [h('tr', null, h('th', { scope: 'row' }, c.upstream || '?', h('br'), h('span', { class: 'sub' }, c.provider, ', ', t('request.key', { n: c.key_index + 1 }))), h('td', null, c.upstream_model),
      h('td', null, t(`outcome.${c.outcome}`), c.reason && h('span', { class: 'sub' }, ` ${reason(c.reason)}`), c.status ? h('span', { class: 'sub' }, ` HTTP ${c.status}`) : ''),
      h('td', null, callBar(c, r)), h('td', { class: 'num' }, `+${number(Math.max(0, new Date(c.created_at) - start))} ${t('unit.ms')}`), h('td', { class: 'num' }, duration(c.latency_ms)),
      h('td', { class: 'num' }, `${number(c.prompt_tokens)} / ${number(c.completion_tokens)}`), h('td', { class: 'num' }, money(c.cost))), c.headers && h('tr', null, h('td', { colspan: 8 }, headers(c.headers)))]))));
}

const headers = (all) => h('details', { data: { test: 'headers' } }, h('summary', null, tn('request.headers', Object.keys(all).length)),
  h('dl', { class: 'mono' }, Object.entries(all).map(([name, value]) => [h('dt', null, name), h('dd', null, value)])));
