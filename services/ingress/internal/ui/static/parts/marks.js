import { h } from '../core/dom.js';
import { countdown, number } from '../core/format.js';
import { t } from '../core/i18n.js';

/** 'ok', 'rest' or 'dead': a key that may be used, one that rests, one that is refused. */
export function keyState(key) {
  if (key.is_forbidden || (key.status === 'failed' && /auth|forbidden|invalid/i.test(key.error ?? ''))) return 'dead';
  return key.usable && key.status !== 'failed' && !key.resting_models?.length && !(key.cooldown_remaining > 0) ? 'ok' : 'rest';
}

/** One mark for each key. Shape and pattern tell its state, and so do the words for who does not see it. */
export function keyMarks(statistics, total) {
  const states = statistics?.keys?.map(keyState) ?? Array.from({ length: total ?? 0 }, () => 'ok');
  const count = (state) => states.filter((s) => s === state).length;
  const text = [['ok', 'keys.usable'], ['rest', 'keys.resting'], ['dead', 'keys.refused']].filter(([state]) => count(state)).map(([state, key]) => t(key, { n: count(state) })).join(', ');
  const most = 24;
  return h('span', { class: 'keys', role: 'img', 'aria-label': text || t('keys.none'), title: text || t('keys.none') },
    states.slice(0, most).map((state) => h('i', { class: `key ${state}` })), states.length > most && h('span', { class: 'sub' }, `+${states.length - most}`));
}

/** How many calls there are, of how many there may be. */
export function slots(active, limit) {
  if (!limit) return h('span', { class: 'sub' }, t('slots.running', { n: number(active) }));
  const shown = Math.min(limit, 16);
  return h('span', { class: 'slots' }, h('span', { class: 'slots', 'aria-hidden': 'true' }, Array.from({ length: shown }, (_, i) => h('i', { class: i < Math.ceil((active / limit) * shown) ? 'on' : '' }))),
    h('span', null, `${number(active)} / ${number(limit)}`));
}

/** A state in words, with the time that it lasts. */
export function stateOf({ state, text, until }) {
  return h('span', { class: `state ${state}` }, h('span', null, text, until && [' ', countdown(until)]));
}
