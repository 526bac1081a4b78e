// The page of a demo: providers that can be broken, and scenes that show what the gateway does about it. It is there in "hydrallm demo" alone.
import { admin, send } from '../core/api.js';
import { h, set } from '../core/dom.js';
import { readEvents } from '../core/events.js';
import { countdown } from '../core/format.js';
import { circuitState, circuitUntil } from '../core/health.js';
import { t, tn } from '../core/i18n.js';
import { link } from '../core/router.js';
import { keyMarks, stateOf } from '../parts/marks.js';
import { failed, words } from '../parts/states.js';
import { announce, toast } from '../parts/toast.js';
import { head, segments } from './shell.js';

export const demo = { id: 'demo', letter: 'd', mount };

const states = ['healthy', 'broken', 'slow', 'limited'];
const FIRST = 'alpha';
const WAIT = 250, LONGEST = 60_000; // for a provider that is used again: circuits are open for a few seconds

function mount({ root, live, on, signal }) {
  let upstreams = [], playing = false;
  const cards = h('div', { class: 'grid', data: { test: 'upstreams' } });
  const buttons = [];
  root.append(head(t('nav.demo')), h('div', { class: 'stack' }, h('p', { class: 'muted' }, t('demo.about')), cards, scenes.map((scene) => {
    const out = h('ol', { class: 'steps', 'aria-live': 'polite', data: { test: `steps-${scene.id}` } });
    const button = h('button', { class: 'btn primary', type: 'button', 'aria-label': t('demo.playthis', { name: t(`demo.${scene.id}`) }), data: { test: `play-${scene.id}` }, on: { click: () => play(scene, out) } }, t('demo.play'));
    buttons.push(button);
    const title = t(`demo.${scene.id}`);
    return h('section', { class: 'panel', 'aria-label': title, data: { scene: scene.id } }, h('h2', null, title, h('span', { class: 'spacer' }), button), h('p', { class: 'muted' }, t(`demo.${scene.id}.text`)), out);
  })));

  async function play(scene, out) {
    if (playing) return;
    playing = true;
    buttons.forEach((b) => { b.disabled = true; });
    set(out);
    out.dataset.state = 'playing';
    const tell = (...line) => out.appendChild(h('li', null, line));
    try {
      await scene.run({ tell, put, ready: () => ready(tell), ask: (body) => ask(body, tell, signal), keys });
      out.dataset.state = 'done';
    } catch (e) {
      out.dataset.state = 'error';
      if (e.name !== 'AbortError') out.append(h('li', null, failed(e)));
    }
    playing = false;
    buttons.forEach((b) => { b.disabled = false; });
    look();
  }

  async function put(upstream, state) {
    upstreams = (await admin('demo', { body: { upstream, state }, signal })).upstreams;
    show();
    announce(t(`demo.is.${state}`, { name: upstream }));
  }

  /** Heals a provider: rests that it asked for are ended. */
  async function heal(upstream) {
    await put(upstream, 'healthy');
    await admin('probe?force=true', { method: 'POST', signal });
  }

  /** Heals all providers, and waits until the gateway uses them again: the circuits that failures opened soon close by themselves. */
  async function ready(tell) {
    tell(t('demo.healing'));
    ({ upstreams } = await admin('demo', { signal }));
    for (const { id } of upstreams) await heal(id);
    const waits = new Map(); // the lines about providers
    for (const end = Date.now() + LONGEST; Date.now() < end;) {
      const { channels = {}, circuits = {} } = await admin('status', { signal });
      const away = upstreams.filter(({ id }) => !channels[`${id}-mock`]?.usable);
      for (const [name, line] of waits) if (!away.some(({ id }) => id === name)) set(line, t('demo.waited', { name }));
      if (!away.length) return;
      for (const { id } of away) {
        const circuit = circuits[`${id}-mock`];
        if (circuit?.state === 'open' && !waits.has(id)) waits.set(id, tell(t('demo.waits', { name: id }), ' ', countdown(circuitUntil(circuit))));
      }
      await new Promise((done) => { setTimeout(done, WAIT); });
    }
  }

  /** How many keys of a provider rest. */
  async function keys(upstream) {
    const { keys: all = [] } = (await admin('status', { signal })).key_statistics?.[upstream] ?? {};
    return { resting: all.filter((k) => k.cooldown_remaining > 0 || k.resting_models?.length).length, total: all.length, left: Math.max(0, ...all.flatMap((k) => [k.cooldown_remaining ?? 0, ...(k.model_cooldowns ?? []).map((c) => c.cooldown_remaining)])) };
  }

  async function look() {
    try {
      upstreams = (await admin('demo', { signal })).upstreams;
      show();
    } catch (e) { if (e.name !== 'AbortError') set(cards, failed(e, look)); }
  }

  async function choose(id, state) {
    try {
      await (state === 'healthy' ? heal(id) : put(id, state));
    } catch (e) { if (e.name !== 'AbortError') toast(words(e), 'bad'); }
    look();
  }

  function show() {
    if (!cards.querySelector('[data-upstream]')) set(cards, upstreams.map((u) => card(u, choose)));
    for (const u of upstreams) {
      const root = cards.querySelector(`[data-upstream="${u.id}"]`);
      root.dataset.now = u.state;
      const circuit = live.status?.circuits?.[`${u.id}-mock`];
      const statistics = live.status?.key_statistics?.[u.id];
      set(root.querySelector('[data-part=facts]'), h('span', { data: { part: 'state' } }, t(`demo.is.${u.state}`, { name: u.id })), keyMarks(statistics, 0), circuit && circuit.state !== 'closed' && stateOf(circuitState(circuit)),
        h('span', { class: 'sub' }, tn('demo.requests', u.requests)));
      for (const b of root.querySelectorAll('[data-choice]')) b.setAttribute('aria-pressed', String(b.dataset.choice === u.state));
    }
  }

  on('status', () => { if (!playing) look(); else show(); });
  look();
}

function card(u, choose) {
  return h('section', { class: 'panel w6', 'aria-label': u.id, data: { upstream: u.id } }, h('h2', null, u.id, h('span', { class: 'sub' }, t(u.id === FIRST ? 'demo.first' : 'demo.second'))),
    h('div', { class: 'row', data: { part: 'facts' } }), segments(t('demo.switch', { name: u.id }), states.map((s) => [s, t(`demo.${s}`)]), u.state, (state) => choose(u.id, state)));
}

/** Asks the gateway as any client does, and tells who answered. */
async function ask(body, tell, signal) {
  const question = body.messages.at(-1).content;
  tell(h('span', { class: 'muted' }, t('demo.asked')), ' ', h('q', null, question.replace(/\nquote$/, '')));
  const begun = performance.now();
  const answer = await send('v1/chat/completions', { body: { model: 'demo', stream: true, ...body }, signal });
  const provider = answer.headers.get('X-Gateway-Provider'), attempts = Number(answer.headers.get('X-Gateway-Attempts') ?? 1);
  const said = h('blockquote');
  tell(h('strong', { data: { answered: provider } }, t(attempts > 1 ? 'demo.answered.later' : 'demo.answered', { name: provider, n: attempts, s: ((performance.now() - begun) / 1000).toFixed(2) })), ' ',
    h('a', { href: link('requests', { request_id: answer.headers.get('X-Request-Id') }) }, t('demo.way')), said);
  let text = '';
  await readEvents(answer.body, (name, data) => {
    if (!name || data === '[DONE]') return; // a sign of life, or the end
    const event = JSON.parse(data);
    if (event.error) throw new Error(event.error.message);
    text += event.choices?.[0]?.delta?.content ?? '';
    set(said, text);
  });
  return { text, provider, attempts };
}

const user = (content) => ({ role: 'user', content });

const scenes = [
  {
    id: 'failover',
    async run({ tell, put, ready, ask }) {
      await ready();
      await put(FIRST, 'broken');
      tell(t('demo.is.broken', { name: FIRST }));
      const { provider } = await ask({ messages: [user('Hello!')] });
      tell(t('demo.failover.end', { name: provider }));
    },
  },
  {
    id: 'rests',
    async run({ tell, put, ready, ask, keys }) {
      await ready();
      await put(FIRST, 'limited');
      tell(t('demo.is.limited', { name: FIRST }));
      await ask({ messages: [user('Hello again!')] });
      const { resting, total, left } = await keys(FIRST);
      tell(t('demo.rests.end', { n: resting, all: total, name: FIRST, s: left }));
    },
  },
  {
    id: 'session',
    async run({ tell, put, ready, ask }) {
      const session = `demo-${crypto.randomUUID?.() ?? Math.random().toString(36).slice(2)}`;
      await ready();
      const one = await ask({ session_id: session, messages: [user('My boat is called Marlin.')] });
      await put(FIRST, 'broken');
      tell(t('demo.is.broken', { name: FIRST }));
      const two = await ask({ session_id: session, messages: [user('recall')] });
      tell(t('demo.session.end', { one: one.provider, two: two.provider }), ' ', h('a', { href: link('sessions', { id: session }) }, t('demo.session.link')));
    },
  },
  {
    id: 'web',
    async run({ tell, ready, ask }) {
      await ready();
      await ask({ has_search: true, messages: [user('What lamp has the lighthouse of Demo Bay?\nquote')] });
      tell(t('demo.web.end'));
    },
  },
];
