// The turns of a conversation, as they are shown.
import { admin } from '../../core/api.js';
import { h, html, isLink, set } from '../../core/dom.js';
import { duration, number } from '../../core/format.js';
import { t } from '../../core/i18n.js';
import { words } from '../../parts/states.js';
import { way } from '../../parts/way.js';
import { details, reasonText } from '../requestdetails.js';
import { worked } from '../webpanel.js';

/** Shows Markdown when it comes into sight, as text until then. */
const watcher = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    watcher.unobserve(e.target);
    render(e.target);
  }
}, { rootMargin: '400px' });

async function render(element) {
  const source = element.textContent;
  if (!source.trim()) return;
  try {
    const { html: cleaned } = await admin('markdown', { body: { text: source } });
    element.className = 'md';
    html(element, cleaned);
  } catch { /* it stays text */ }
}

/** A turn of the reader. */
export function mine({ text, images }, { edit } = {}) {
  return h('div', { class: 'turn me', data: { role: 'user' } }, h('span', { class: 'sr' }, t('play.you')), text,
    images.map((src) => /^data:image\//.test(src) ? h('img', { src, alt: t('play.image') }) : h('span', { class: 'sub' }, t('play.image'))),
    edit && h('div', { class: 'meta' }, h('button', { class: 'link quiet', type: 'button', data: { test: 'edit' }, on: { click: edit } }, t('play.edit'))));
}

/** The text of a message and its images, whatever form it has. */
export function contentOf(content) {
  if (typeof content === 'string') return { text: content, images: [] };
  const parts = Array.isArray(content) ? content : [];
  return {
    text: parts.map((p) => p.text ?? '').filter(Boolean).join('\n'),
    images: parts.map((p) => p.image_url?.url ?? (p.type === 'image_url' ? p.image_url : '')).filter((url) => typeof url === 'string' && url),
  };
}

/** An answer, which may still be coming. */
export class Answer {
  constructor() {
    this.text = '';
    this.thought = '';
    this.plain = h('div', { class: 'plain' });
    this.cursor = h('span', { class: 'cursor', 'aria-hidden': 'true' });
    this.thinking = h('details', { class: 'think', hidden: true }, h('summary', null, t('play.thinking')), h('div'));
    this.sources = h('ul', { class: 'sources', hidden: true, 'aria-label': t('play.sources') });
    this.problem = h('div', { hidden: true });
    this.meta = h('div', { class: 'meta', data: { test: 'meta' } });
    this.element = h('div', { class: 'turn', data: { role: 'assistant' } }, h('span', { class: 'sr' }, t('play.model')), this.thinking, this.plain, this.problem, this.sources, this.meta);
    this.begun = performance.now();
    this.first = 0;
    this.id = ''; // of the message, once it is stored
    this.request = null;
    this.head = null;
    this.actions = [];
  }

  start() {
    this.plain.append(this.cursor);
    set(this.meta, h('span', null, t('play.waiting')));
  }

  addText(piece) {
    if (!this.first) this.first = performance.now() - this.begun;
    if (this.thought && !this.thoughtFor) {
      this.thoughtFor = performance.now() - this.begun;
      this.thinking.firstChild.textContent = t('play.thought', { time: duration(this.thoughtFor) });
    }
    this.text += piece;
    this.cursor.before(piece);
    this.tell(t('play.streaming'));
  }

  addThought(piece) {
    if (!this.first) this.first = performance.now() - this.begun;
    this.thought += piece;
    this.thinking.hidden = false;
    this.thinking.lastChild.append(piece);
    this.tell(t('play.streaming'));
  }

  /** Shows a message that is stored, with the pages that were read for its question. */
  restore(message, question) {
    const { text } = contentOf(message.content);
    this.id = message.id;
    this.text = text;
    this.plain.textContent = text;
    const thought = message.message?.reasoning_content ?? '';
    if (thought) { this.thinking.hidden = false; this.thinking.firstChild.textContent = t('play.reasoning'); this.thinking.lastChild.textContent = thought; }
    this.parts([...(question?.parts ?? []).filter(ofWeb), ...(message.parts ?? []).filter((p) => !ofWeb(p) || !question?.parts?.some(ofWeb))]);
    const cost = message.parts?.find((p) => p.type === 'step_cost')?.data;
    this.stored = [cost && h('span', null, [cost.provider, cost.model].filter(Boolean).join(', ')), cost && h('span', null, duration(cost.latency_ms)), cost && h('span', null, t('play.total', { n: number(cost.tokens) })), message.state && h('span', { class: 'state warn' }, t(`message.${message.state}`))];
    this.showMeta();
    if (text) watcher.observe(this.plain);
  }

  tell(state) {
    const now = Math.floor((performance.now() - this.begun) / 200);
    if (this.told === now) return;
    this.told = now;
    this.showMeta(state);
  }

  end({ usage, finish, stopped, error }) {
    this.cursor.remove();
    this.took = performance.now() - this.begun;
    this.usage = usage;
    this.finish = stopped ? t('play.stopped') : finish && finish !== 'stop' ? t('play.finish', { reason: finish }) : '';
    if (this.thought && !this.thoughtFor) this.thinking.firstChild.textContent = t('play.reasoning');
    if (error) {
      this.problem.hidden = false;
      set(this.problem, h('div', { class: 'error', role: 'alert' }, h('strong', null, words(error)), error.id && h('span', { class: 'sub' }, t('error.id', { id: error.id }))));
    }
    this.showMeta();
    if (this.text) render(this.plain);
  }

  /** What is known of the request by now. */
  showMeta(state) {
    const { head, request } = this;
    const path = request ? way(request) : head && h('span', { class: 'way' }, h('span', { class: 'chip ok' }, head.upstream || head.provider || head.model), head.attempts > 1 && h('small', null, t('play.attempts', { n: head.attempts })));
    const usage = this.usage && h('span', null, t('play.tokens', { prompt: number(this.usage.prompt_tokens ?? 0), completion: number(this.usage.completion_tokens ?? 0) }));
    set(this.meta, path, head?.model && h('span', null, head.model), head?.reason && h('span', null, reasonText(head.reason)), this.first ? h('span', null, t('play.first', { time: duration(this.first) })) : null,
      this.took ? h('span', null, duration(this.took)) : null, usage, state && h('span', null, state), this.finish && h('span', { class: 'state warn' }, this.finish), this.stored,
      !state && this.actions.map(([name, label, run]) => h('button', { class: 'link quiet', type: 'button', data: { test: name }, on: { click: run } }, label)),
      request && h('button', { class: 'link quiet', type: 'button', data: { test: 'details' }, on: { click: () => details(request) } }, t('play.details')));
  }

  /** Shows where an answer was read: pages, and what was searched for. */
  parts(list) {
    const chips = list.flatMap(({ type, data }) => {
      if (type === 'web_search') return [source('', t('play.searched', { query: data?.query ?? '', n: data?.results_count ?? 0 }), data?.status)];
      if (type === 'web_fetch') return [source(data?.url, data?.title || host(data?.url), data?.status)];
      if (type === 'retry') return [source('', t('play.retried', { provider: data?.provider ?? '', error: data?.error ?? data?.error_code ?? '' }), 'failed')];
      return [];
    });
    this.sources.hidden = chips.length === 0;
    set(this.sources, chips.map((chip, i) => h('li', null, chip(i + 1))));
  }
}

/** Whether a part of a message is something of the web. */
export const ofWeb = (part) => part.type === 'web_fetch' || part.type === 'web_search';

const host = (url) => { try { return new URL(url).host; } catch { return String(url ?? ''); } };

function source(url, text, status) {
  const kind = worked(status) ? 'ok' : status ? 'bad' : '';
  return (n) => isLink(url) ? h('a', { class: `source ${kind}`, href: url, target: '_blank', rel: 'noopener noreferrer nofollow' }, h('b', null, n), text)
    : h('span', { class: `source ${kind}` }, text);
}
