// What a request says beside the message.
import { h } from '../../core/dom.js';
import { t } from '../../core/i18n.js';

const KEY = 'hydrallm.playground';

function read() {
  try { return JSON.parse(sessionStorage.getItem(KEY) ?? '{}'); } catch { return {}; }
}

/** The parameters of requests, with the form for them. They hold until the tab is closed. */
export function options() {
  const values = { temperature: '', max_tokens: '', stream: true, fetch: true, search: false, compress: true, system: '', ...read() };
  const keep = (name, value) => {
    values[name] = value;
    try { sessionStorage.setItem(KEY, JSON.stringify(values)); } catch { /* they hold until the page is left */ }
  };
  const shown = h('output', { for: 'p-temperature' }, values.temperature === '' ? t('play.unset') : values.temperature);
  const slider = h('input', { id: 'p-temperature', type: 'range', min: 0, max: 2, step: 0.1, value: values.temperature === '' ? '1' : values.temperature, data: { test: 'temperature' }, on: {
    input: () => { keep('temperature', slider.value); shown.textContent = slider.value; },
  } });
  const reset = h('button', { class: 'link quiet', type: 'button', on: { click: () => { keep('temperature', ''); slider.value = '1'; shown.textContent = t('play.unset'); } } }, t('play.reset'));
  const check = (name, label) => h('label', { class: 'check' }, t(label), h('input', { type: 'checkbox', checked: values[name], data: { test: name }, on: { change: (e) => keep(name, e.target.checked) } }));
  const element = [
    h('h2', null, t('play.request')),
    h('div', { class: 'field' }, h('label', { for: 'p-temperature' }, t('play.temperature'), ' ', shown), slider, reset),
    h('label', { class: 'field' }, t('play.maxtokens'), h('input', { type: 'number', min: 1, inputmode: 'numeric', value: values.max_tokens, placeholder: t('play.unset'), data: { test: 'max_tokens' }, on: { input: (e) => keep('max_tokens', e.target.value) } })),
    check('stream', 'play.stream'), check('fetch', 'play.autofetch'), check('search', 'play.search'), check('compress', 'play.compress'),
    h('label', { class: 'field' }, t('play.system'), h('textarea', { rows: 4, value: values.system, data: { test: 'system' }, on: { input: (e) => keep('system', e.target.value) } })),
  ];
  return {
    element,
    /** The members of a request. */
    members() {
      const body = { stream: values.stream, auto_web_fetch: values.fetch, compress_context: values.compress };
      if (values.search) body.has_search = true;
      if (values.stream) body.stream_options = { include_usage: true };
      if (values.temperature !== '') body.temperature = Number(values.temperature);
      if (Number(values.max_tokens) > 0) body.max_tokens = Math.floor(Number(values.max_tokens));
      return body;
    },
    system: () => values.system.trim(),
  };
}
