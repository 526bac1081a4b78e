// Stored conversations: what was said in them, forks, deletion.
import { admin } from '../core/api.js';
import { h, isLink, keyed, set } from '../core/dom.js';
import { client, dateTime, number, time } from '../core/format.js';
import { t, tn } from '../core/i18n.js';
import { go, link } from '../core/router.js';
import { confirm, dialog } from '../parts/dialog.js';
import { empty, failed, loading, words } from '../parts/states.js';
import { copyButton, toast } from '../parts/toast.js';
import { contentOf } from './playground/turns.js';
import { head } from './shell.js';

export const sessions = { id: 'sessions', letter: 's', mount };

const LIMIT = 1000, STEP = 200; // that the gateway lists, and that are shown at once
const PAUSE = 2000; // between what requests have changed and the reading of it, in milliseconds
const MESSAGES = 100; // of one session, at first

function mount({ root, params, on, signal, note }) {
  let all = [], shown = STEP, term = params.q ?? '', box = null;
  const body = h('tbody', { data: { test: 'sessions' } });
  const col = (key, cls = '') => h('th', { scope: 'col', class: cls }, t(key));
  const table = h('div', { class: 'scroll' }, h('table', null, h('thead', null, h('tr', null, col('sessions.title'), col('col.messages', 'num'), col('sessions.last', 'hide'), col('filter.client', 'hide'), col('sessions.updated'), h('th', { scope: 'col' }, h('span', { class: 'sr' }, t('col.actions'))))), body));
  const content = h('div', null, loading(8));
  const count = h('p', { class: 'sub', role: 'status' });
  const next = h('button', { class: 'btn', type: 'button', hidden: true, on: { click: () => { shown += STEP; show(); } } }, t('action.more'));
  const search = h('input', { type: 'search', placeholder: t('sessions.search'), 'aria-label': t('sessions.search'), value: term, data: { test: 'search' }, on: { input: () => { term = search.value; shown = STEP; note({ q: term }); show(); } } });
  const id = h('input', { placeholder: t('sessions.id'), 'aria-label': t('sessions.id'), required: true, size: 16, data: { test: 'import-id' } });
  const days = h('input', { type: 'number', min: 1, max: 365, value: 30, size: 4, 'aria-label': t('sessions.days'), data: { test: 'days' } });
  root.append(head(t('nav.sessions'), count, h('span', { class: 'spacer' }), h('button', { class: 'btn main', type: 'button', data: { test: 'new' }, on: { click: () => go('playground') } }, t('play.new'))),
    h('section', { class: 'panel', 'aria-label': t('nav.sessions') }, h('div', { class: 'filters' }, search,
      h('form', { class: 'row', on: { submit: (e) => { e.preventDefault(); open(id.value.trim()); } } }, id, h('button', { class: 'btn small', type: 'submit', data: { test: 'import' } }, t('sessions.import'))),
      h('form', { class: 'row', on: { submit: (e) => { e.preventDefault(); cleanup(); } } }, h('label', { class: 'row' }, t('sessions.older'), days), h('button', { class: 'btn small danger', type: 'submit', data: { test: 'cleanup' } }, t('sessions.cleanup')))), content, next));

  let reads = 0, soon = 0;
  async function read() {
    const mine = ++reads;
    try {
      const got = await admin(`sessions?limit=${LIMIT}`, { signal });
      if (mine !== reads) return;
      all = got;
      show();
    } catch (e) {
      if (e.name !== 'AbortError' && mine === reads && !signal.aborted) set(content, failed(e, read));
    }
  }

  /** Reads again what requests have changed, those of a moment at once. */
  function follow({ requests }) {
    if (requests.some((r) => r.session_id)) soon ||= setTimeout(() => { soon = 0; if (!signal.aborted) read(); }, PAUSE);
  }

  function show() {
    const wanted = term.trim().toLowerCase();
    const found = wanted ? all.filter((s) => `${s.title} ${s.session_id} ${s.last_model} ${s.owner ?? ''}`.toLowerCase().includes(wanted)) : all;
    count.textContent = all.length === LIMIT ? t('sessions.newest', { n: number(LIMIT) }) : tn('sessions.count', found.length);
    next.hidden = found.length <= shown;
    if (!found.length) { set(content, all.length ? empty(t('sessions.nomatch'), t('sessions.nomatch.text')) : empty(t('play.nosessions'), t('sessions.none.text'))); return; }
    if (!content.contains(table)) set(content, table);
    keyed(body, found.slice(0, shown), (s) => s.session_id, row);
  }

  function row(s) {
    return h('tr', { data: { session: s.session_id } }, h('th', { scope: 'row' }, h('button', { class: 'link', type: 'button', 'aria-haspopup': 'dialog', on: { click: () => open(s.session_id) } }, h('span', { class: 'name' }, s.title || t('sessions.untitled'))), h('br'), h('span', { class: 'sub mono' }, s.session_id, s.parent_session_id && ` ← ${s.parent_session_id}`)),
      h('td', { class: 'num' }, number(s.message_count)), h('td', { class: 'hide' }, [s.last_provider, s.last_model].filter(Boolean).join(', ') || '–'), h('td', { class: 'hide' }, client(s.owner ?? '')), h('td', null, time(s.updated_at)),
      h('td', { class: 'num' }, h('button', { class: 'link quiet', type: 'button', 'aria-label': t('sessions.deletethis', { title: s.title || s.session_id }), on: { click: () => remove(s) } }, t('action.delete'))));
  }

  /** Shows what was said in a session. */
  async function open(wanted) {
    if (!wanted) return;
    note({ q: term, id: wanted });
    const into = h('div', null, loading(6));
    box?.close();
    const mine = box = dialog(t('sessions.session'), [into], { id: 'session', closed: () => { if (box === mine) { box = null; if (!signal.aborted) note({ q: term }); } } });
    try {
      const { info, messages } = await admin('sessions/import', { body: { session_id: wanted }, signal });
      set(into, conversation(info, messages));
    } catch (e) {
      if (e.name !== 'AbortError') set(into, failed(e));
    }
  }

  function conversation(info, messages) {
    const list = h('div', { class: 'parts', data: { test: 'session-messages' } });
    let from = Math.max(0, messages.length - MESSAGES);
    const earlier = h('button', { class: 'btn small', type: 'button', on: { click: () => { from = Math.max(0, from - 5 * MESSAGES); draw(); } } });
    const draw = () => {
      earlier.hidden = from === 0;
      earlier.textContent = t('play.earlier', { n: number(from) });
      set(list, messages.slice(from).map((m) => message(m, info)));
    };
    draw();
    const entry = (key, ...value) => [h('dt', null, t(key)), h('dd', null, value)];
    return [h('h3', null, info.title || t('sessions.untitled')), h('dl', null, entry('sessions.id', h('span', { class: 'mono' }, info.session_id), ' ', copyButton(info.session_id)), entry('filter.client', client(info.owner ?? '')), entry('sessions.created', dateTime(info.created_at)), entry('col.messages', number(info.message_count)),
      info.parent_session_id && entry('sessions.parent', h('button', { class: 'link mono', type: 'button', on: { click: () => open(info.parent_session_id) } }, info.parent_session_id)),
      ...all.filter((s) => s.parent_session_id === info.session_id).map((s) => entry('sessions.forked', h('button', { class: 'link', type: 'button', on: { click: () => open(s.session_id) } }, s.title || s.session_id)))),
    h('div', { class: 'actions' }, h('button', { class: 'btn danger', type: 'button', on: { click: () => remove(info) } }, t('action.delete')), h('a', { class: 'btn', href: link('requests', { session_id: info.session_id }), on: { click: () => box.close() } }, t('sessions.requests')),
      h('button', { class: 'btn main', type: 'button', data: { test: 'resume' }, on: { click: () => { box.close(); go('playground', { session: info.session_id }); } } }, t('sessions.resume'))), earlier, list];
  }

  async function fork(session, message) {
    try {
      const made = await admin(`sessions/${encodeURIComponent(session)}/fork`, { body: { message_id: message } });
      toast(t('play.forked'));
      await read();
      open(made.session_id);
    } catch (e) { toast(words(e), 'bad'); }
  }

  function message(m, info) {
    const { text, images } = contentOf(m.content);
    const extra = (m.parts ?? []).filter((p) => p.type !== 'text');
    return h('article', { class: `msg ${m.role}`, data: { message: m.id } }, h('div', { class: 'meta' }, h('strong', null, t(`role.${m.role}`)), time(m.created_at), m.state && h('span', { class: 'state warn' }, t(`message.${m.state}`)), h('button', { class: 'link quiet', type: 'button', on: { click: () => fork(info.session_id, m.id) } }, t('play.forkhere'))),
      h('div', { class: 'body' }, text || (images.length ? t('play.image') : m.content === null ? t('sessions.notext') : '')), extra.map(part));
  }

  async function remove(s) {
    if (!await confirm(t('sessions.confirm', { title: s.title || s.session_id }), t('action.delete'))) return;
    try {
      await admin(`sessions/${encodeURIComponent(s.session_id)}`, { method: 'DELETE' });
      box?.close();
      toast(t('sessions.deleted'));
      read();
    } catch (e) { toast(words(e), 'bad'); }
  }

  async function cleanup() {
    if (!await confirm(t('sessions.confirmcleanup', { n: days.value }), t('sessions.cleanup'))) return;
    try {
      const { deleted_count: n } = await admin(`sessions/cleanup?days=${Number(days.value)}`, { method: 'POST' });
      toast(tn('sessions.cleaned', n));
      read();
    } catch (e) { toast(words(e), 'bad'); }
  }

  on('requests', follow);
  on('refresh', read);
  read();
  if (params.id) open(params.id);
  return { update: (p) => { if (p.id) open(p.id); } };
}

/** A part of a message that is no text: a summary, a page that was read, what it cost. */
function part({ type, data }) {
  const link = isLink(data?.url) && h('a', { href: data.url, target: '_blank', rel: 'noopener noreferrer nofollow' }, data.title || data.url);
  return h('details', null, h('summary', null, h('span', { class: 'chip' }, t(`part.${type}`)), ' ', link), h('pre', { tabindex: '0' }, JSON.stringify(data, null, 2)));
}
