// The sessions at the side of the playground.
import { admin } from '../../core/api.js';
import { h, keyed, set } from '../../core/dom.js';
import { when } from '../../core/format.js';
import { t, tn } from '../../core/i18n.js';
import { empty, failed, loading } from '../../parts/states.js';

const SHOWN = 100;

/** @param {{open: (id: string) => void, fresh: () => void, signal: AbortSignal}} actions */
export function sessionList({ open, fresh, signal }) {
  let all = [], current = '', term = '';
  const list = h('ul', { class: 'sessions', data: { test: 'sessions' } });
  const more = h('p', { class: 'sub', hidden: true });
  const box = h('div', null, loading(4));
  const search = h('input', { type: 'search', placeholder: t('sessions.search'), 'aria-label': t('sessions.search'), on: { input: () => { term = search.value.toLowerCase(); show(); } } });
  const element = h('aside', { class: 'left', 'aria-label': t('nav.sessions') },
    h('button', { class: 'btn', type: 'button', data: { test: 'new-session' }, on: { click: fresh } }, t('play.new')), search, box);

  function show() {
    const found = all.filter((s) => !term || `${s.title} ${s.session_id}`.toLowerCase().includes(term));
    if (!found.length) {
      set(box, empty(t(all.length ? 'sessions.nomatch' : 'play.nosessions')), term && byId());
      return;
    }
    if (!box.contains(list)) set(box, list, more);
    more.hidden = found.length <= SHOWN;
    more.textContent = t('sessions.more', { n: found.length - SHOWN });
    keyed(list, found.slice(0, SHOWN), (s) => s.session_id, item, (s) => JSON.stringify([s.title, s.message_count, s.last_provider, s.session_id === current]));
  }

  // A session that is not among the newest is opened by its id.
  const byId = () => h('button', { class: 'btn small', type: 'button', on: { click: () => open(search.value.trim()) } }, t('play.openid'));

  const item = (s) => h('li', null, h('button', { class: s.parent_session_id ? 'sess fork' : 'sess', type: 'button', 'aria-current': s.session_id === current ? 'true' : null, data: { session: s.session_id }, on: { click: () => open(s.session_id) } },
    h('b', null, s.title || t('sessions.untitled')), h('span', null, tn('sessions.messages', s.message_count), ', ', when(s.updated_at))));

  async function read() {
    try {
      all = await admin('sessions?limit=500', { signal });
      show();
    } catch (e) {
      if (e.name !== 'AbortError') set(box, failed(e, read));
    }
  }
  read();
  return { element, read, mark(id) { current = id; if (all.length) show(); }, get: (id) => all.find((s) => s.session_id === id) };
}
