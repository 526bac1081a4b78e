// The choice of a model.
import { ask } from '../../core/api.js';
import { h, newId, set } from '../../core/dom.js';
import { number } from '../../core/format.js';
import { t } from '../../core/i18n.js';
import { words } from '../../parts/states.js';

const MANY = 300; // more are written, not chosen

/** @param {string} [wanted] @param {AbortSignal} signal @param {{label?: string, unlike?: string}} [options] label of the choice; a model that is not chosen by itself */
export function modelSelect(wanted = '', signal, { label = t('play.modelname'), unlike = '' } = {}) {
  let models = [], current = wanted || 'auto';
  const about = h('div');
  const element = h('span', null);
  const known = newId('models');
  const self = { element, about, changed: () => {}, value: () => current, choose };

  function choose(id) {
    current = id;
    show();
  }

  function changed(id) {
    current = id;
    describe();
    self.changed();
  }

  function show() {
    const all = models.some((m) => m.id === current) || !current ? models : [{ id: current }, ...models];
    if (all.length > MANY) {
      const list = h('datalist', { id: known }, all.map((m) => h('option', { value: m.id })));
      set(element, h('input', { list: known, value: current, 'aria-label': label, data: { test: 'model' }, on: { change: (e) => changed(e.target.value.trim() || 'auto') } }), list);
    } else {
      const option = (m) => h('option', { value: m.id }, m.id);
      const own = all.filter((m) => !m.owned_by || m.owned_by === 'hydrallm');
      const owners = [...new Set(all.map((m) => m.owned_by).filter((o) => o && o !== 'hydrallm'))];
      own.sort((a, b) => Number(b.id === 'auto') - Number(a.id === 'auto'));
      const select = h('select', { 'aria-label': label, data: { test: 'model' }, on: { change: () => changed(select.value) } }, own.map(option),
        owners.map((o) => h('optgroup', { label: o }, all.filter((m) => m.owned_by === o).map(option))));
      select.value = current;
      set(element, select);
    }
    describe();
  }

  function describe() {
    const m = models.find((x) => x.id === current);
    const entry = (key, value) => value ? [h('dt', null, t(key)), h('dd', null, value)] : null;
    const can = m?.capabilities ?? {};
    set(about, m && [h('h2', null, label), h('dl', null, entry('model.owner', m.owned_by), entry('model.tier', m.tier !== 'unknown' && m.tier), entry('model.context', can.max_tokens && number(can.max_tokens)),
      entry('model.images', can.multimodal === null ? '' : t(can.multimodal ? 'answer.yes' : 'answer.no')))]);
  }

  async function read() {
    try {
      models = (await ask('v1/models', { signal })).data;
      const before = current, others = models.filter((m) => m.id !== unlike);
      if (!wanted && current === 'auto' && others.length && !others.some((m) => m.id === 'auto')) current = others[0].id;
      show();
      if (current !== before) self.changed();
    } catch (e) {
      if (e.name !== 'AbortError') set(about, h('p', { class: 'sub' }, words(e)));
    }
  }
  show();
  read();
  return self;
}
