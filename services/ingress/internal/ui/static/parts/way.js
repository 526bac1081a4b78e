// The way of a request: each upstream that was called, in order, what became of it and why.
import { h, s } from '../core/dom.js';
import { duration } from '../core/format.js';
import { t } from '../core/i18n.js';

/** What became of a call, for one who reads quickly. */
function outcome(call, request) {
  switch (call.outcome) {
    case 'success': return ['ok', duration(request.first_token_ms ? Math.min(request.first_token_ms, call.latency_ms || Infinity) : call.latency_ms)];
    case 'cancelled': return ['skip', t('outcome.cancelled')];
    case 'begun': return ['', t('outcome.begun')];
    case 'lost': return ['bad', t('outcome.lost')];
    default: return ['bad', call.status && call.status >= 400 ? String(call.status) : reason(call.reason)];
  }
}

/** A class of failure, shortened. */
export const reason = (text) => String(text || t('outcome.failed')).replace(/^http (\d+).*/, '$1').replaceAll('_', ' ').toLowerCase();

const label = (call) => call.upstream || call.provider || '?';

export function way(request) {
  const calls = request.calls ?? [];
  if (!calls.length) {
    const none = request.status === 'success' ? h('span', { class: 'chip ok' }, request.upstream || request.provider || '–')
      : h('span', { class: 'chip skip' }, request.status === 'cancelled' ? t('outcome.cancelled') : t('way.none'));
    return h('span', { class: 'way' }, none);
  }
  return h('span', { class: 'way' }, calls.map((call, i) => {
    const [kind, text] = outcome(call, request);
    return [i > 0 && h('span', { class: 'to', 'aria-hidden': 'true' }, '→'),
      h('span', { class: `chip ${kind}`, title: call.reason || call.outcome }, label(call), text && h('small', null, text))];
  }));
}

/** When a request came, in milliseconds: the ledger has its end. */
export const begun = (request) => new Date(request.created_at).getTime() - request.latency_ms;

/** The parts of the time of a request: [kind, milliseconds]. */
export function spans(request) {
  const start = begun(request), end = start + request.latency_ms;
  const parts = [];
  let at = start;
  const add = (kind, to) => {
    const ms = Math.min(to, end) - at;
    if (ms > 0) { parts.push([kind, ms]); at += ms; }
  };
  for (const call of request.calls ?? []) {
    const from = new Date(call.created_at).getTime();
    add('idle', from);
    if (call.outcome === 'success') {
      add('warn', start + (request.first_token_ms || request.latency_ms));
      add('ok', from + call.latency_ms);
    } else add('bad', from + call.latency_ms);
  }
  add('idle', end);
  return parts;
}

/** Where the time of a request went, as one bar. */
export function waterfall(request, wide = false) {
  const width = wide ? 700 : 150;
  const parts = spans(request), total = parts.reduce((n, [, ms]) => n + ms, 0) || 1;
  let x = 0;
  const text = parts.map(([kind, ms]) => `${t(`span.${kind}`)} ${duration(ms)}`).join(', ');
  return s('svg', { class: wide ? 'wf wide' : 'wf', viewBox: `0 0 ${width} 14`, preserveAspectRatio: 'none', role: 'img', 'aria-label': text || t('span.none') },
    s('rect', { class: 'fill-line', x: 0, y: 6, width, height: 2 }),
    parts.map(([kind, ms]) => {
      const w = Math.max(1, (ms / total) * width);
      const rect = s('rect', { class: `fill-${kind}`, x: Math.min(x, width - w), y: 2, width: w, height: 10, rx: 1.5 });
      x += (ms / total) * width;
      return rect;
    }));
}

/** When a call was made in the time of its request, and for how long. */
export function callBar(call, request) {
  const total = Math.max(1, request.latency_ms), from = Math.max(0, new Date(call.created_at).getTime() - begun(request));
  const x = Math.min(1, from / total) * 100, width = Math.max(1.5, Math.min(100 - x, (call.latency_ms / total) * 100));
  return s('svg', { class: 'wf wide', viewBox: '0 0 100 14', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, s('rect', { class: 'fill-line', x: 0, y: 6, width: 100, height: 2 }),
    s('rect', { class: call.outcome === 'success' ? 'fill-ok' : call.outcome === 'cancelled' ? 'fill-idle' : 'fill-bad', x: Math.min(x, 98.5), y: 2, width, height: 10 }));
}

export function waterfallLegend() {
  const item = (cls, key) => h('span', null, h('i', { class: cls }), t(key));
  return h('div', { class: 'legend' }, item('i0', 'span.idle'), item('i3', 'span.bad'), item('iw', 'span.warn'), item('io', 'span.ok'));
}
