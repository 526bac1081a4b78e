// The first day: what the gateway found, which models are listed, and one question to see that it works.
import { admin, ask } from '../core/api.js';
import { h, set } from '../core/dom.js';
import { number } from '../core/format.js';
import { providerState } from '../core/health.js';
import { t, tn } from '../core/i18n.js';
import { live } from '../core/live.js';
import { go } from '../core/router.js';
import { dialog } from '../parts/dialog.js';
import { keyMarks, stateOf } from '../parts/marks.js';
import { empty, failed, loading, words } from '../parts/states.js';
import { toast } from '../parts/toast.js';
import { chat } from './playground/chat.js';

const SKIPPED = 'hydrallm.onboarding-skipped';
const SHOWN = 200; // models at once

/** Offers it once, to whoever opens a gateway on which nobody has chosen yet. */
export async function offerOnboarding() {
  try {
    if (localStorage.getItem(SKIPPED)) return;
    const state = await admin('onboarding');
    if (!state.completed) onboarding(state);
  } catch { /* there is nothing to offer */ }
}

export async function onboarding(known) {
  const found = h('div', null, loading(3)), models = h('div', null, loading(3)), answer = h('div', { role: 'status' });
  let chosen = null, saved = false;
  const skip = () => { try { localStorage.setItem(SKIPPED, '1'); } catch { /* it is offered again */ } };
  const step = (n, title, ...content) => h('section', null, h('h3', null, `${n}. ${title}`), content);
  const test = h('button', { class: 'btn', type: 'button', data: { test: 'test-question' }, on: { click: question } }, t('onboarding.ask'));
  const box = dialog(t('onboarding.title'), [h('p', { class: 'muted' }, t('onboarding.text')), step(1, t('onboarding.found'), found), step(2, t('onboarding.models'), models), step(3, t('onboarding.try'), h('div', { class: 'row' }, test), answer),
    h('p', { class: 'note', data: { test: 'tos' } }, t('tos.notice')),
    h('div', { class: 'actions' }, h('button', { class: 'btn', type: 'button', data: { test: 'skip' }, on: { click: () => { skip(); box.close(); } } }, t('onboarding.skip')), h('button', { class: 'btn main', type: 'button', data: { test: 'finish' }, on: { click: finish } }, t('onboarding.finish')))],
  { id: 'onboarding', closed: () => { live.removeEventListener('status', showFound); if (!saved) skip(); } });

  function showFound() {
    const status = live.status;
    if (!status) { if (live.faults.status) set(found, failed(new Error(live.faults.status.message))); return; }
    const ids = Object.keys(status.providers ?? {}).sort((a, b) => Number(status.providers[b].healthy) - Number(status.providers[a].healthy) || a.localeCompare(b));
    set(found, ids.length ? h('div', { class: 'scroll' }, h('table', null, h('tbody', null, ids.map((id) => h('tr', null, h('th', { scope: 'row' }, id), h('td', null, stateOf(providerState(status, id))), h('td', null, keyMarks(status.key_statistics?.[id], status.providers[id].total_keys)), h('td', { class: 'num sub' }, tn('provider.models', status.providers[id].models)))))))
      : empty(t('onboarding.nothing'), t('onboarding.nothing.text'), 'GROQ_API_KEY=... hydrallm serve'));
  }

  async function readModels() {
    try {
      const state = known ?? await admin('onboarding');
      const ids = (state.available_models ?? []).map((m) => (typeof m === 'string' ? m : m.id));
      if (!ids.length) { set(models, empty(t('onboarding.nomodels'), t('onboarding.nomodels.text'))); return; }
      const enabled = new Set(state.enabled_models ?? []), on = new Set(enabled.size ? ids.filter((id) => enabled.has(id)) : ids);
      const list = h('div', { class: 'scroll modellist', tabindex: '0', role: 'group', 'aria-label': t('onboarding.models') }), more = h('p', { class: 'sub', role: 'status' });
      const found = () => ids.filter((id) => id.toLowerCase().includes(filter.value.toLowerCase()));
      const choose = (id, wanted) => (wanted ? on.add(id) : on.delete(id));
      const draw = () => {
        const all = found();
        set(list, all.slice(0, SHOWN).map((id) => h('label', { class: 'check' }, h('input', { type: 'checkbox', value: id, checked: on.has(id), on: { change: (e) => choose(id, e.target.checked) } }), h('span', { class: 'mono' }, id))));
        more.textContent = all.length > SHOWN ? t('sessions.more', { n: number(all.length - SHOWN) }) : '';
      };
      const filter = h('input', { type: 'search', placeholder: t('onboarding.filter'), 'aria-label': t('onboarding.filter'), on: { input: draw } });
      set(models, h('p', { class: 'sub' }, t('onboarding.models.text')), h('div', { class: 'row' }, filter, ...[true, false].map((wanted) => h('button', { class: 'btn small', type: 'button', on: { click: () => { for (const id of found()) choose(id, wanted); draw(); } } }, t(wanted ? 'onboarding.all' : 'onboarding.none')))), list, more);
      draw();
      chosen = () => (on.size === ids.length ? [] : ids.filter((id) => on.has(id)));
    } catch (e) { set(models, failed(e, readModels)); }
  }

  async function question() {
    test.disabled = true;
    const text = h('p');
    set(answer, text);
    try {
      const listed = (await ask('v1/models')).data;
      const model = listed.some((m) => m.id === 'auto') ? 'auto' : listed[0]?.id ?? 'auto';
      let said = '';
      const { error } = await chat({ model, stream: true, messages: [{ role: 'user', content: t('play.hello') }] }, { signal: new AbortController().signal, head: (hd) => set(answer, h('p', { class: 'sub' }, t('onboarding.answers', { name: [hd.provider, hd.model].filter(Boolean).join(', ') })), text), text: (piece) => { said += piece; text.textContent = said; }, reasoning: () => {} });
      if (error) set(answer, failed(error));
    } catch (e) { set(answer, failed(e)); }
    test.disabled = false;
  }

  async function finish() {
    try {
      if (chosen) await admin('onboarding', { body: { enabled_models: chosen() } });
      saved = true;
      skip();
      box.close();
      toast(t('onboarding.done'));
      go('playground');
    } catch (e) { toast(words(e), 'bad'); }
  }

  live.addEventListener('status', showFound);
  showFound();
  readModels();
}
