// Trying models: a conversation that streams, over the same route that clients use.
import { admin, address } from '../../core/api.js';
import { h, set } from '../../core/dom.js';
import { number } from '../../core/format.js';
import { t } from '../../core/i18n.js';
import { confirm } from '../../parts/dialog.js';
import { empty, failed, loading, words } from '../../parts/states.js';
import { announce, copy, toast } from '../../parts/toast.js';
import { quote, reasonText } from '../requestdetails.js';
import { comparison } from './compare.js';
import { follow } from './follow.js';
import { images } from './images.js';
import { modelSelect } from './models.js';
import { options } from './options.js';
import { sessionList } from './sessionlist.js';
import { Answer, contentOf, mine, ofWeb } from './turns.js';

export const playground = { id: 'playground', letter: 'p', mount, full: true };

const SHOWN = 60; // messages of a session that are shown at first

function mount({ root, params, on, signal, note }) {
  let session = '', running = null, dirty = false;
  let pair = null; // of models that are compared
  let transcript = []; // of a conversation that is no session
  const answers = new Map(); // by the id of the request

  const title = h('h1', { tabindex: '-1' }, t('nav.playground'));
  const about = h('span', { class: 'sub mono' });
  const talk = h('div', { class: 'talk', role: 'log', 'aria-live': 'off', 'aria-label': t('play.conversation'), tabindex: '0', data: { test: 'talk' } });
  const input = h('textarea', { rows: 2, placeholder: t('play.message'), 'aria-label': t('play.message'), data: { test: 'message', escapes: '' }, on: {
    keydown: (e) => { if (e.key === 'Enter' && !e.shiftKey && !e.isComposing && !matchMedia('(pointer: coarse)').matches) { e.preventDefault(); submit(); } },
    input: () => { input.rows = Math.min(12, Math.max(2, input.value.split('\n').length)); },
  } });
  const box = h('form', { class: 'box', on: { submit: (e) => { e.preventDefault(); submit(); } } });
  const pictures = images(box, input);
  const models = modelSelect(params.model, signal);
  const button = h('button', { class: 'btn main', type: 'submit', data: { test: 'send' } }, t('play.send'));
  const choice = h('span', null, models.element), abouts = h('div', null, models.about);
  box.append(pictures.shown, input, h('div', { class: 'row' }, choice, pictures.button, h('span', { class: 'spacer' }), button));
  const parameters = options();
  const last = h('dl', { data: { test: 'last' } }), raw = h('pre', { tabindex: '0' });
  const ofLast = h('div', null, h('h2', null, t('play.last')), last, h('details', null, h('summary', null, t('play.raw')), raw));
  const list = sessionList({ open: (id) => openSession(id), fresh, signal });
  const act = (test, key, run, cls = '') => h('button', { class: `btn small ${cls}`, type: 'button', data: { test }, on: { click: run } }, t(key));
  const forkButton = act('fork', 'play.fork', () => fork(''));
  const deleteButton = act('delete-session', 'play.delete', remove);
  const compareButton = act('comparing', 'play.compare', () => (pair ? fresh() : compare(models.value(), '')));
  compareButton.setAttribute('aria-pressed', 'false');
  const conversation = h('div', { class: 'conversation' }, talk);
  const layout = h('div', { class: 'play' }, list.element,
    h('div', { class: 'talkcol' },
      h('header', { class: 'top' }, title, about, h('span', { class: 'spacer' }), act('list', 'play.list', () => side('list'), 'onlyphone'), act('params', 'play.params', () => side('params'), 'onlynarrow'), compareButton, forkButton, deleteButton, act('curl', 'action.curl', () => copy(curl()))),
      conversation, h('div', { class: 'compose' }, box)),
    h('aside', { class: 'right', 'aria-label': t('play.request') }, h('div', { class: 'onlynarrow' }, act('back', 'play.back', () => side(''))), parameters.element, abouts, ofLast));
  root.append(layout);

  const side = (name) => { const was = layout.classList.contains(name); layout.classList.remove('list', 'params'); if (name && !was) layout.classList.add(name); };
  const toEnd = () => { talk.scrollTop = talk.scrollHeight; };

  function showSession(id) {
    session = id;
    const known = list.get(id);
    title.textContent = id ? known?.title || t('sessions.untitled') : t('nav.playground');
    about.textContent = id;
    forkButton.hidden = deleteButton.hidden = !id;
    list.mark(id);
    note({ model: models.value(), session: id });
  }

  /** Shows two models side by side. What was said before is no part of it. */
  function compare(first, second) {
    stop();
    side('');
    transcript = [];
    showSession('');
    pair = comparison([first, second], { body: members, began, signal, changed: noteCompared, busy: showBusy });
    title.textContent = t('play.comparing');
    set(conversation, pair.element);
    set(abouts, pair.about);
    choice.hidden = ofLast.hidden = true;
    compareButton.setAttribute('aria-pressed', 'true');
    noteCompared();
    input.focus();
  }

  function noteCompared() {
    if (!pair) return;
    const [model, second] = pair.models();
    note({ model, compare: second });
  }

  /** Ends the comparison, if there is one. */
  function single() {
    if (!pair) return;
    pair.stop();
    models.choose(pair.models()[0]);
    pair = null;
    set(conversation, talk);
    set(abouts, models.about);
    choice.hidden = ofLast.hidden = false;
    compareButton.setAttribute('aria-pressed', 'false');
  }

  function fresh() {
    stop();
    single();
    side('');
    transcript = [];
    showSession('');
    set(talk, empty(t('play.begin'), t('play.begin.text')));
    input.focus();
  }

  async function openSession(id) {
    if (!id) return;
    stop();
    single();
    side('');
    transcript = [];
    set(talk, loading(6));
    showSession(id);
    try {
      const messages = await admin(`sessions/${encodeURIComponent(id)}/messages`, { signal });
      if (session !== id) return;
      showMessages(messages, SHOWN);
      showSession(id);
    } catch (e) {
      if (e.name !== 'AbortError' && session === id) set(talk, failed(e, () => openSession(id)));
    }
  }

  function showMessages(messages, most) {
    const all = messages.filter((m) => m.role === 'user' || m.role === 'assistant');
    const from = Math.max(0, all.length - most);
    set(talk, from > 0 && h('div', { class: 'turn' }, h('button', { class: 'btn small', type: 'button', on: { click: () => { const below = talk.scrollHeight - talk.scrollTop; showMessages(messages, most * 4); talk.scrollTop = talk.scrollHeight - below; } } }, t('play.earlier', { n: number(from) }))),
      all.slice(from).map((m, i) => {
        if (m.role === 'user') return mine(contentOf(m.content), { edit: () => edit(all[from + i - 1]?.id, contentOf(m.content).text) });
        const answer = new Answer();
        answer.actions = actionsOf(answer);
        answer.restore(m, all[from + i - 1]?.role === 'user' ? all[from + i - 1] : null);
        return answer.element;
      }));
    if (!all.length) set(talk, empty(t('play.begin'), t('play.begin.text')));
    toEnd();
  }

  const actionsOf = (answer) => [['copy', t('action.copy'), () => copy(answer.text)], ...(session ? [['fork-here', t('play.forkhere'), () => fork(answer.id)]] : [])];

  async function fork(message) {
    try {
      const made = await admin(`sessions/${encodeURIComponent(session)}/fork`, { body: message ? { message_id: message } : {} });
      await list.read();
      await openSession(made.session_id);
      toast(t('play.forked'));
    } catch (e) { toast(words(e), 'bad'); }
  }

  /** Says something else in the place of what was said: the conversation forks before it. */
  async function edit(before, text) {
    if (before) await fork(before);
    else fresh();
    input.value = text;
    input.focus();
  }

  async function remove() {
    if (!await confirm(t('sessions.confirm', { title: title.textContent }), t('action.delete'))) return;
    try {
      await admin(`sessions/${encodeURIComponent(session)}`, { method: 'DELETE' });
      fresh();
      list.read();
    } catch (e) { toast(words(e), 'bad'); }
  }

  function members(model, history, content) {
    const system = parameters.system();
    return { model, ...parameters.members(), messages: [...(system ? [{ role: 'system', content: system }] : []), ...history, { role: 'user', content }] };
  }

  function curl() {
    const said = input.value || t('play.hello');
    const bodies = pair ? pair.models().map((model, i) => members(model, pair.histories()[i], said)) : [members(models.value(), session ? [] : transcript, said)];
    return bodies.map((body) => `curl ${body.stream ? '-N ' : ''}${quote(address('v1/chat/completions'))} -H 'Content-Type: application/json' -H "Authorization: Bearer $HYDRALLM_KEY" -d ${quote(JSON.stringify(body))}`).join('\n');
  }

  const busy = () => running !== null || Boolean(pair?.running());
  const submit = () => (busy() ? stop() : say(input.value));
  const stop = () => { running?.abort(); pair?.stop(); };
  const began = (id, answer) => { answers.set(id, answer); };

  function showBusy() {
    button.textContent = t(!busy() ? 'play.send' : pair ? 'play.stopboth' : 'play.stop');
    button.dataset.test = busy() ? 'stop' : 'send';
  }

  async function say(text) {
    const attached = pictures.take();
    if (!text.trim() && !attached.length) return;
    input.value = '';
    input.rows = 2;
    const content = attached.length ? [...(text.trim() ? [{ type: 'text', text }] : []), ...attached.map((url) => ({ type: 'image_url', image_url: { url } }))] : text;
    const question = { text, images: attached, content };
    announce(t('play.answering'));
    announce(await (pair ? pair.ask(question) : converse(question)));
  }

  /** Says something in the conversation, and gives what came of it, in words. */
  async function converse(question) {
    const { text, content } = question, call = new AbortController(), history = transcript;
    running = call;
    showBusy();
    if (!talk.querySelector('.turn')) talk.replaceChildren();
    const answer = new Answer();
    answer.start();
    talk.append(mine(question), answer.element);
    toEnd();
    if (!session && !history.length) await newSession(call.signal);
    answer.actions = [...actionsOf(answer), ['retry', t('play.retry'), () => say(text)]];
    const body = { ...members(models.value(), session ? [] : history, content), ...(session && { session_id: session }) };
    const outcome = await follow(talk, answer, body, {
      signal: call.signal, began: (id) => { began(id, answer); if (answer.head?.warning) toast(t('play.nohistory'), 'bad'); },
    });
    showLast(answer, outcome);
    if (answer.text) history.push({ role: 'user', content }, { role: 'assistant', content: answer.text });
    if (running === call) running = null;
    showBusy();
    if (!signal.aborted && session) {
      dirty = true;
      named(answer);
    }
    return outcome.stopped ? t('play.stopped') : outcome.error ? words(outcome.error) : `${t('play.answered')} ${answer.text}`;
  }

  /** A conversation becomes a session with its first message, unless sessions can't be had. */
  async function newSession(until) {
    try {
      const made = await admin('sessions/new', { method: 'POST' });
      if (!until.aborted) showSession(made.session_id);
    } catch (e) {
      if (e.status) toast(t('play.nosession', { message: words(e) }), 'bad');
    }
  }

  /** Reads what was stored of an answer: its id, by which one may fork, and where it was read. */
  async function named(answer) {
    const id = session;
    try {
      const messages = await admin(`sessions/${encodeURIComponent(id)}/messages`, { signal });
      await list.read();
      if (session !== id) return;
      dirty = false;
      const stored = messages.findLast((m) => m.role === 'assistant');
      if (stored && stored.content === answer.text) {
        answer.id = stored.id;
        const read = [...(messages.findLast((m) => m.role === 'user')?.parts ?? []), ...(stored.parts ?? [])].filter(ofWeb);
        if (read.length && answer.sources.hidden) answer.parts(read);
      }
      showSession(id);
    } catch { /* the answer is there all the same */ }
  }

  function showLast(answer, { raw: text, usage }) {
    const entry = (key, value) => value ? [h('dt', null, t(key)), h('dd', null, value)] : null;
    const head = answer.head ?? {};
    const used = usage?.gateway_key_index;
    set(last, entry('request.reason', head.reason && reasonText(head.reason)), entry('col.provider', head.provider), entry('col.upstream', head.upstream), entry('col.model', head.model), entry('request.key', used === undefined ? '' : t('request.key', { n: used + 1 })),
      entry('col.attempts', head.attempts && number(head.attempts)), entry('request.id', head.id && h('span', { class: 'mono' }, head.id)));
    raw.textContent = text ?? '';
  }

  on('requests', ({ requests }) => {
    for (const r of requests) {
      const answer = answers.get(r.request_id);
      if (!answer) continue;
      answer.request = r;
      answers.delete(r.request_id);
      answer.showMeta();
      if (session && answer.took && answer.sources.hidden) named(answer); // where it was read is stored by now
    }
  });
  on('refresh', () => { if (!busy()) list.read(); });

  if (params.session) openSession(params.session);
  else if (params.compare) compare(params.model ?? '', params.compare);
  else fresh();
  models.changed = () => note({ model: models.value(), session });
  return {
    update(p) {
      if (p.compare && !p.session) {
        if (pair) pair.choose([p.model ?? pair.models()[0], p.compare]);
        else compare(p.model ?? models.value(), p.compare);
        return;
      }
      if (pair && !p.session) fresh();
      if (p.model) models.choose(p.model);
      if ((p.session ?? '') !== session) { if (p.session) openSession(p.session); else fresh(); }
    },
    escape: () => { if (busy()) stop(); else side(''); },
    leave: () => { stop(); if (dirty) list.mark(''); },
  };
}
