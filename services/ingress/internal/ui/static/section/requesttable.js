// Requests as rows, each with the way it took. A click opens all that is known of one.
import { h, keyed } from '../core/dom.js';
import { duration, time } from '../core/format.js';
import { t } from '../core/i18n.js';
import { way, waterfall } from '../parts/way.js';
import { details } from './requestdetails.js';

export function requestTable(caption) {
  const col = (key, cls = '') => h('th', { scope: 'col', class: cls }, t(key));
  const body = h('tbody', { data: { test: 'requests' } });
  const element = h('div', { class: 'scroll' }, h('table', null, h('caption', { class: 'sr' }, caption), h('thead', null, h('tr', null, col('col.time'), col('col.model'), col('col.way'), col('col.where', 'hide'), col('col.total', 'num'))), body));
  return { element, body, show: (requests) => keyed(body, requests, (r) => String(r.number), row, (r) => `${r.status} ${r.calls?.length}`) };
}

function row(r) {
  return h('tr', { data: { request: r.request_id } }, h('td', { class: 'sub' }, time(r.created_at)),
    h('th', { scope: 'row' }, h('button', { class: 'link', type: 'button', 'aria-haspopup': 'dialog', on: { click: () => details(r) } }, h('span', { class: 'name' }, r.model || '–'))),
    h('td', null, way(r)), h('td', { class: 'hide' }, waterfall(r)), h('td', { class: 'num' }, duration(r.latency_ms)));
}
