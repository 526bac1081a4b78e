// Requests and the way each took, found by what is known of them. What is looked for is in the address.
import { admin, withQuery } from '../core/api.js';
import { h, set } from '../core/dom.js';
import { clientId, number } from '../core/format.js';
import { t, tn } from '../core/i18n.js';
import { empty, failed, loading } from '../parts/states.js';
import { announce } from '../parts/toast.js';
import { waterfallLegend } from '../parts/way.js';
import { tryIt } from './overview.js';
import { requestTable } from './requesttable.js';
import { head } from './shell.js';

export const requests = { id: 'requests', letter: 'r', mount };

const PAGE = 100, MOST = 2000; // rows at once, and at most
const fields = ['model', 'provider', 'client', 'reason', 'session_id'];
const statuses = ['', 'success', 'failover', 'failed', 'cancelled'];

function mount({ root, params, live, on, signal, note }) {
  let filter = read(params), rows = [], more = false, held = [];
  const table = requestTable(t('nav.requests'));
  const box = h('div', null, loading(8));
  const next = h('button', { class: 'btn', type: 'button', hidden: true, data: { test: 'more' }, on: { click: () => older() } }, t('action.more'));
  const count = h('p', { class: 'sub' });
  const fresh = h('button', { class: 'btn small', type: 'button', hidden: true, data: { test: 'fresh' }, on: { click: () => { take(held); held = []; show(); window.scrollTo(0, 0); } } });
  let later = 0;
  const soon = () => { clearTimeout(later); later = setTimeout(change, 300); };
  const search = h('input', { type: 'search', placeholder: t('requests.search'), 'aria-label': t('requests.search'), value: filter.request_id, data: { test: 'search' }, on: { input: soon } });
  const status = h('select', { 'aria-label': t('col.status'), data: { test: 'status' }, on: { change: () => change() } }, statuses.map((s) => h('option', { value: s }, t(s ? `filter.${s}` : 'filter.allstatus'))));
  status.value = filter.status;
  const inputs = Object.fromEntries(fields.map((name) => [name, h('input', { placeholder: t(`filter.${name}`), 'aria-label': t(`filter.${name}`), value: filter[name], size: 14, data: { test: name }, on: { input: soon } })]));
  const known = h('datalist', { id: 'known-providers' }, Object.keys(live.status?.providers ?? {}).map((p) => h('option', { value: p })));
  inputs.provider.setAttribute('list', known.id);
  root.append(known, head(t('nav.requests'), count, h('span', { class: 'spacer' }), fresh),
    h('section', { class: 'panel', 'aria-label': t('nav.requests') }, h('form', { class: 'filters', role: 'search', on: { submit: (e) => { e.preventDefault(); change(); } } }, search, status, Object.values(inputs),
      h('button', { class: 'btn small', type: 'button', on: { click: clear } }, t('action.clear'))), box, h('div', { class: 'row' }, next, h('span', { class: 'spacer' }), waterfallLegend())));

  function change() {
    filter = { request_id: search.value.trim(), status: status.value, ...Object.fromEntries(fields.map((f) => [f, inputs[f].value.trim()])) };
    note(filter);
    load();
  }

  function clear() {
    search.value = status.value = '';
    for (const f of fields) inputs[f].value = '';
    change();
  }

  /** The filter as the gateway knows it. */
  const asked = () => {
    const trace = traceOf(filter.request_id);
    return { ...filter, client: clientId(filter.client), ...(trace && { request_id: '', trace_id: trace }) };
  };

  let loads = 0;
  async function load() {
    const mine = ++loads;
    held = [];
    try {
      const page = await admin(withQuery('requests', { ...asked(), limit: PAGE }), { signal });
      if (mine !== loads || signal.aborted) return;
      rows = page.requests;
      more = page.more;
      show();
      announce(count.textContent);
    } catch (e) {
      if (e.name !== 'AbortError' && mine === loads && !signal.aborted) set(box, failed(e, load));
    }
  }

  async function older() {
    next.disabled = true;
    try {
      const page = await admin(withQuery('requests', { ...asked(), limit: PAGE, before: rows.at(-1)?.number }), { signal });
      rows = [...rows, ...page.requests];
      more = page.more && rows.length < MOST;
      show();
    } catch (e) {
      if (e.name !== 'AbortError') box.append(failed(e));
    }
    next.disabled = false;
  }

  function show() {
    next.hidden = !more;
    fresh.hidden = !held.length;
    fresh.textContent = tn('requests.fresh', held.length);
    count.textContent = more ? t('requests.shown', { n: number(rows.length) }) : tn('requests.count', rows.length);
    if (!rows.length) {
      const any = Object.values(filter).some(Boolean);
      set(box, any ? empty(t('requests.nomatch'), t('requests.nomatch.text')) : empty(t('requests.none'), t('requests.none.text'), tryIt()));
      return;
    }
    if (!box.contains(table.element)) set(box, table.element);
    table.show(rows);
  }

  function take(list) {
    const known = new Set(rows.map((r) => r.number));
    rows = [...list.filter((r) => !known.has(r.number)), ...rows].slice(0, MOST);
  }

  on('requests', (news) => {
    const fit = news.requests.filter(fits);
    if (!fit.length) return;
    if (window.scrollY > 80) held = [...fit, ...held]; // whoever reads below is not moved
    else take(fit);
    show();
  });
  on('refresh', load);

  /** What the gateway would say of a request that comes later. */
  function fits(r) {
    const called = (r.calls ?? []).map((c) => c.reason);
    const trace = traceOf(filter.request_id);
    return (!filter.request_id || (trace ? r.trace_id === trace : r.request_id.startsWith(filter.request_id))) && (!filter.model || [r.model, r.upstream_model].includes(filter.model))
      && (!filter.provider || r.provider === filter.provider) && (!filter.client || r.principal === clientId(filter.client)) && (!filter.session_id || r.session_id === filter.session_id)
      && (!filter.reason || [r.routing_reason, r.status.replace(/^error: /, ''), ...called].includes(filter.reason)) && (!filter.status || filter.status === kind(r) || (filter.status === 'success' && r.status === 'success'));
  }

  load();
  return {
    update(p) {
      filter = read(p);
      search.value = filter.request_id;
      status.value = filter.status;
      for (const f of fields) inputs[f].value = filter[f];
      load();
    },
    leave: () => clearTimeout(later),
  };
}

/** The id of a trace that is looked for, by itself or as it stands in a traceparent; '' for none. */
const traceOf = (text) => /^(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?$/i.exec(text)?.[1].toLowerCase() ?? '';

const kind = (r) => (r.status.startsWith('error') ? 'failed' : r.status === 'success' && r.calls?.some((c) => c.outcome === 'failed' || c.outcome === 'lost') ? 'failover' : r.status);

const read = (params) => ({ request_id: params.request_id ?? '', status: statuses.includes(params.status) ? params.status : '', ...Object.fromEntries(fields.map((f) => [f, params[f] ?? ''])) });
