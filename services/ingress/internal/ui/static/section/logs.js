// Events as they happen. Only the lines in sight are in the page, however many there are.
import { admin, withQuery } from '../core/api.js';
import { h, set } from '../core/dom.js';
import { clock, dateTime, number } from '../core/format.js';
import { t, tn } from '../core/i18n.js';
import { link } from '../core/router.js';
import { confirm } from '../parts/dialog.js';
import { empty, failed, loading, words } from '../parts/states.js';
import { announce, copyButton, toast } from '../parts/toast.js';
import { head } from './shell.js';
import { windowed } from '../parts/windowed.js';

export const logs = { id: 'logs', letter: 'l', mount };

const PAGE = 200, MOST = 10_000;
const levels = ['', 'INFO', 'WARNING', 'ERROR'];
const categories = ['', 'ROUTING', 'LLM_EXECUTION', 'WEB_ENRICH', 'AGENT_EXECUTION', 'AUDIT'];

function mount({ root, params, on, signal, note }) {
  let filter = read(params), entries = [], more = false, paused = false, held = [];
  const box = h('div', { data: { test: 'logs' } }, loading(8));
  const list = windowed(row, (e) => e.id);
  const count = h('p', { class: 'sub' });
  let later = 0;
  const soon = () => { clearTimeout(later); later = setTimeout(change, 300); };
  const search = h('input', { type: 'search', placeholder: t('logs.search'), 'aria-label': t('logs.search'), value: filter.text, data: { test: 'search' }, on: { input: soon } });
  const choice = (name, values) => { const s = h('select', { 'aria-label': t(`col.${name}`), data: { test: name }, on: { change: () => change() } }, values.map((v) => h('option', { value: v }, v || t(`filter.all${name}`)))); s.value = filter[name]; return s; };
  const level = choice('level', levels), category = choice('category', categories);
  const request = h('input', { placeholder: t('request.id'), 'aria-label': t('request.id'), value: filter.request_id, size: 16, data: { test: 'request_id' }, on: { input: soon } });
  const pause = h('button', { class: 'btn small', type: 'button', 'aria-pressed': 'false', data: { test: 'pause' }, on: { click: () => hold(!paused) } }, t('logs.pause'));
  const next = h('button', { class: 'btn', type: 'button', hidden: true, data: { test: 'more' }, on: { click: () => older() } }, t('action.more'));
  root.append(head(t('nav.logs'), count, h('span', { class: 'spacer' }), pause, h('button', { class: 'btn small danger', type: 'button', data: { test: 'clear' }, on: { click: clear } }, t('logs.clear'))),
    h('section', { class: 'panel', 'aria-label': t('nav.logs') }, h('form', { class: 'filters', role: 'search', on: { submit: (e) => { e.preventDefault(); change(); } } }, search, level, category, request), box, next));

  function change() {
    filter = { text: search.value.trim(), level: level.value, category: category.value, request_id: request.value.trim() };
    note(filter);
    load();
  }

  let loads = 0;
  async function load() {
    const mine = ++loads;
    held = [];
    try {
      const got = await admin(withQuery('logs', { ...filter, limit: PAGE }), { signal });
      if (mine !== loads || signal.aborted) return;
      entries = got;
      more = got.length === PAGE;
      show();
      announce(count.textContent);
    } catch (e) {
      if (e.name !== 'AbortError' && mine === loads && !signal.aborted) set(box, failed(e, load));
    }
  }

  async function older() {
    next.disabled = true;
    try {
      const got = await admin(withQuery('logs', { ...filter, limit: 1000, before: entries.at(-1)?.id }), { signal });
      entries = [...entries, ...got];
      more = got.length === 1000 && entries.length < MOST;
      show();
    } catch (e) { if (e.name !== 'AbortError') toast(words(e), 'bad'); }
    next.disabled = false;
  }

  function show() {
    next.hidden = !more;
    pause.textContent = paused ? (held.length ? tn('logs.resumewith', held.length) : t('logs.resume')) : t('logs.pause');
    pause.setAttribute('aria-pressed', String(paused));
    count.textContent = more ? t('requests.shown', { n: number(entries.length) }) : tn('logs.count', entries.length);
    if (!entries.length) { set(box, empty(t(Object.values(filter).some(Boolean) ? 'logs.nomatch' : 'logs.none'), t('logs.none.text'))); return; }
    if (!box.contains(list.element)) set(box, list.element);
    list.show(entries);
  }

  function hold(stop) {
    paused = stop;
    if (!stop) { take(held); held = []; }
    show();
  }

  function take(fresh) {
    const newest = entries[0]?.id ?? 0;
    entries = [...fresh.filter((e) => e.id > newest), ...entries].slice(0, MOST);
  }

  on('logs', (news) => {
    const fit = news.entries.filter((e) => (!filter.level || e.level === filter.level) && (!filter.category || e.category === filter.category)
      && (!filter.request_id || e.request_id === filter.request_id) && (!filter.text || e.message.toLowerCase().includes(filter.text.toLowerCase())));
    if (!fit.length) return;
    if (paused) held = [...fit, ...held].slice(0, MOST);
    else take(fit);
    show();
  });
  on('refresh', load);

  async function clear() {
    if (!await confirm(t('logs.confirm'), t('logs.clear'))) return;
    try {
      await admin('logs/clear', { method: 'POST' });
      load();
    } catch (e) { toast(words(e), 'bad'); }
  }

  load();
  return {
    update(p) {
      filter = read(p);
      search.value = filter.text;
      level.value = filter.level;
      category.value = filter.category;
      request.value = filter.request_id;
      load();
    },
    leave: () => { clearTimeout(later); list.stop(); },
  };
}

const read = (p) => ({ text: p.text ?? '', level: levels.includes(p.level) ? p.level : '', category: categories.includes(p.category) ? p.category : '', request_id: p.request_id ?? '' });

/** A line, which opens to all that the event says. */
function row(e) {
  const line = h('button', { class: 'logline', type: 'button', 'aria-expanded': 'false', data: { log: String(e.id) }, on: { click: () => toggle() } },
    h('time', { class: 'sub', datetime: e.created_at, title: dateTime(e.created_at) }, clock(e.created_at)), h('span', { class: `lv ${e.level}` }, e.level), h('span', { class: 'sub cat' }, e.category), h('span', { class: 'text' }, e.message));
  const element = h('div', null, line);
  const toggle = () => {
    const open = line.getAttribute('aria-expanded') === 'false';
    line.setAttribute('aria-expanded', String(open));
    if (!open) { element.lastChild.remove(); return; }
    const meta = e.metadata ? JSON.stringify(e.metadata, null, 2) : '';
    element.append(h('div', { class: 'logmore' }, h('dl', null, h('dt', null, t('col.time')), h('dd', null, dateTime(e.created_at)), h('dt', null, t('col.category')), h('dd', null, e.category),
      e.request_id && [h('dt', null, t('request.id')), h('dd', null, h('a', { class: 'mono', href: link('requests', { request_id: e.request_id }) }, e.request_id))]), meta && h('pre', { tabindex: '0' }, meta), h('div', null, copyButton(() => JSON.stringify(e, null, 2)))));
  };
  return element;
}
