// What is shown in place of all sections when the gateway does not let operators in: which key is wanted, and why none will do.
import { h } from '../core/dom.js';
import { left } from '../core/format.js';
import { t } from '../core/i18n.js';
import { brand, languageSwitch, themeSwitch } from './shell.js';
import { copyButton } from '../parts/toast.js';

export function gate(error, enter) {
  const switches = h('div', { class: 'switches' }, languageSwitch(), themeSwitch());
  if (error.code === 'admin_disabled') {
    const command = 'ADMIN_API_KEY=... hydrallm serve';
    return h('main', { class: 'gate', id: 'main', data: { gate: 'disabled' } }, h('div', { class: 'panel' }, brand(), h('h1', null, t('gate.disabled')), h('p', null, t('gate.disabled.text')),
      h('div', { class: 'copy' }, h('pre', null, command), copyButton(command)), h('p', null, t('gate.disabled.file')), switches));
  }
  const input = h('input', { type: 'password', name: 'admin-key', id: 'admin-key', autocomplete: 'current-password', required: true, 'aria-describedby': 'gate-why', spellcheck: 'false' });
  const button = h('button', { class: 'btn main', type: 'submit', data: { test: 'enter' } }, t('gate.enter'));
  const why = h('p', { id: 'gate-why', role: 'status' });
  const form = h('form', { class: 'panel', on: { submit: (e) => {
    e.preventDefault();
    const key = input.value.trim();
    if (!/^[\x21-\x7e]+$/.test(key)) { why.textContent = t('gate.odd'); return; } // it could not travel in a header
    button.disabled = true;
    enter(key);
  } } }, brand(), h('h1', null, t('gate.title')), why, h('label', { class: 'field', for: 'admin-key' }, t('gate.key'), input), button, h('p', { class: 'sub' }, t('gate.kept')), switches);
  if (error.code === 'too_many_attempts') {
    button.disabled = true;
    const until = Date.now() + (error.retryAfter || 5) * 1000;
    const tick = () => {
      const rest = (until - Date.now()) / 1000;
      why.textContent = rest > 0 ? t('gate.wait', { time: left(rest) }) : t('gate.again');
      button.disabled = rest > 0;
      if (rest > 0 && form.isConnected !== false) setTimeout(tick, 1000);
    };
    tick();
  } else why.textContent = /missing/i.test(error.message) ? t('gate.text') : t('gate.wrong');
  return h('main', { class: 'gate', id: 'main', data: { gate: error.code === 'too_many_attempts' ? 'limited' : 'key' } }, form);
}
