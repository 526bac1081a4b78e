// Images that go with a message: by a button, pasted, or dropped.
import { h, set } from '../../core/dom.js';
import { t } from '../../core/i18n.js';
import { toast } from '../../parts/toast.js';

const MOST = 8 << 20; // bytes of one
const TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'];

/** @param {HTMLElement} box where images are dropped @param {HTMLTextAreaElement} input where they are pasted */
export function images(box, input) {
  let list = [];
  const shown = h('div', { class: 'attached', data: { test: 'attached' } });
  const file = h('input', { type: 'file', accept: TYPES.join(','), multiple: true, hidden: true, data: { test: 'file' }, on: { change: () => { add([...file.files]); file.value = ''; } } });
  const button = h('button', { class: 'btn small', type: 'button', on: { click: () => file.click() } }, t('play.addimage'));

  async function add(files) {
    for (const f of files) {
      if (!TYPES.includes(f.type)) toast(t('play.noimage', { name: f.name }), 'bad');
      else if (f.size > MOST) toast(t('play.largeimage', { name: f.name }), 'bad');
      else list.push(await dataURL(f));
    }
    show();
  }

  function show() {
    set(shown, list.map((src, i) => h('button', { type: 'button', 'aria-label': t('play.removeimage', { n: i + 1 }), title: t('play.removeimage', { n: i + 1 }), on: { click: () => { list.splice(i, 1); show(); input.focus(); } } }, h('img', { src, alt: '' }))));
  }

  const filesOf = (data) => [...(data?.files ?? [])].filter((f) => f.type.startsWith('image/'));
  input.addEventListener('paste', (e) => { const files = filesOf(e.clipboardData); if (files.length) { e.preventDefault(); add(files); } });
  box.addEventListener('dragover', (e) => { e.preventDefault(); box.classList.add('drop'); });
  box.addEventListener('dragleave', () => box.classList.remove('drop'));
  box.addEventListener('drop', (e) => { e.preventDefault(); box.classList.remove('drop'); add([...(e.dataTransfer?.files ?? [])]); });

  return { button: [button, file], shown, take() { const taken = list; list = []; show(); return taken; } };
}

function dataURL(file) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });
}
