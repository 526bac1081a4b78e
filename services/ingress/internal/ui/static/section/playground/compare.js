// Two models that are asked the same, side by side. Each side is a conversation of its own, of which nothing is stored.
import { h } from '../../core/dom.js';
import { t } from '../../core/i18n.js';
import { empty, words } from '../../parts/states.js';
import { copy } from '../../parts/toast.js';
import { follow } from './follow.js';
import { modelSelect } from './models.js';
import { Answer, mine } from './turns.js';

/**
 * @param {[string, string]} wanted models
 * @param {{body: (model: string, history: object[], content: any) => object, began: (id: string, answer: Answer) => void, changed: () => void, busy: () => void, signal: AbortSignal}} page
 * changed: other models are chosen; busy: a side begins or ends
 */
export function comparison(wanted, page) {
  const sides = [side('first', t('play.first.model'), wanted[0], '', page), side('second', t('play.second.model'), wanted[1], wanted[0], page)];
  return {
    element: h('div', { class: 'compare', data: { test: 'compare' } }, sides.map((s) => s.element)),
    about: sides.map((s) => s.about),
    models: () => sides.map((s) => s.model()),
    choose: (models) => sides.forEach((s, i) => s.choose(models[i])),
    histories: () => sides.map((s) => s.history()),
    /** Asks both, and gives what they said, in words, once both have ended. */
    ask: async (question) => (await Promise.all(sides.map((s) => s.ask(question)))).join('\n'),
    stop: () => sides.forEach((s) => s.stop()),
    running: () => sides.some((s) => s.running()),
  };
}

function side(name, label, wanted, unlike, { body, began, changed, busy, signal }) {
  const models = modelSelect(wanted, signal, { label, unlike });
  const talk = h('div', { class: 'talk', role: 'log', 'aria-live': 'off', 'aria-label': label, tabindex: '0' }, empty(t('play.compare.begin'), t('play.compare.text')));
  const button = h('button', { class: 'btn small', type: 'button', hidden: true, data: { test: 'stop-side' }, on: { click: () => stop() } }, t('play.stop'));
  const element = h('section', { class: 'half', 'aria-label': label, data: { side: name } }, h('div', { class: 'row' }, models.element, h('span', { class: 'spacer' }), button), talk);
  let running = null, history = [];
  models.changed = changed;
  signal.addEventListener('abort', () => stop());

  const stop = () => { running?.abort(); };

  /** @param {{text: string, images: string[], content: any}} question */
  async function ask(question) {
    if (running) return '';
    const call = new AbortController(), model = models.value(), before = history;
    running = call;
    busy();
    button.setAttribute('aria-label', `${t('play.stop')}: ${model}`);
    button.hidden = false;
    if (!talk.querySelector('.turn')) talk.replaceChildren();
    const answer = new Answer();
    answer.start();
    answer.actions = [['copy', t('action.copy'), () => copy(answer.text)], ['retry', t('play.retry'), () => ask(question)]];
    talk.append(mine(question), answer.element);
    talk.scrollTop = talk.scrollHeight;
    const outcome = await follow(talk, answer, body(model, history, question.content), { signal: call.signal, began: (id) => began(id, answer) });
    if (answer.text) history = [...before, { role: 'user', content: question.content }, { role: 'assistant', content: answer.text }];
    running = null;
    if (document.activeElement === button) talk.focus();
    button.hidden = true;
    busy();
    return `${model}: ${outcome.stopped ? t('play.stopped') : outcome.error ? words(outcome.error) : answer.text}`;
  }

  return { element, about: models.about, model: models.value, choose: models.choose, history: () => history, ask, stop, running: () => running !== null };
}
