// What was read from the web for requests, and how often that worked.
import { admin } from '../core/api.js';
import { h, isLink } from '../core/dom.js';
import { duration, number, percent, time } from '../core/format.js';
import { t } from '../core/i18n.js';
import { empty, load } from '../parts/states.js';

/** @returns {{element: HTMLElement, read: () => void}} */
export function webPanel(signal) {
  const box = h('div', { data: { test: 'web' } });
  const element = h('section', { class: 'panel w12', 'aria-labelledby': 'o-web' }, h('h2', { id: 'o-web' }, t('web.title'), h('small', null, t('web.sub'))), box);
  const read = () => load(box, () => admin('stats', { signal }), show, { keep: true, signal });

  function show({ scraping, recent_scraping: recent }) {
    if (!scraping?.total) return empty(t('web.none'), t('web.none.text'));
    return [h('p', { class: 'muted' }, t('web.sum', { total: number(scraping.total), share: percent(scraping.hits, scraping.total), fails: number(scraping.fails) })), h('details', null, h('summary', null, t('web.recent')), table(recent ?? []))];
  }
  return { element, read };
}

const cols = ['col.time', 'web.what', 'col.status', 'web.chars', 'col.took', 'web.summary'];

function table(rows) {
  return h('div', { class: 'scroll' }, h('table', null, h('thead', null, h('tr', null, cols.map((key, i) => h('th', { scope: 'col', class: i > 4 ? 'hide' : i > 2 ? 'num' : '' }, t(key))))), h('tbody', null, rows.map((r) => h('tr', null,
    h('td', { class: 'sub' }, time(r.created_at)), h('td', null, r.query && h('span', null, r.query, ' '), isLink(r.url) ? h('a', { class: 'sub', href: r.url, target: '_blank', rel: 'noopener noreferrer nofollow' }, r.url) : h('span', { class: 'sub' }, r.url)),
    h('td', null, h('span', { class: `state ${worked(r.status) ? 'ok' : 'bad'}` }, t(`visit.${r.status}`))), h('td', { class: 'num' }, number(r.chars_count)), h('td', { class: 'num' }, duration(r.latency_ms)), h('td', { class: 'sub hide' }, r.response_summary))))));
}

/** Whether something was read. */
export const worked = (status) => status === 'success' || status === 'cache_hit';
