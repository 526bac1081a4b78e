// The page: asks for the key, and shows the section that the address names.
import './core/theme.js';
import { admin, closes, setKey } from './core/api.js';
import { learnClients } from './core/format.js';
import { language, t } from './core/i18n.js';
import { listen } from './core/keyboard.js';
import { live } from './core/live.js';
import { go, link, note, place } from './core/router.js';
import { gate } from './section/gate.js';
import { offerOnboarding } from './section/onboarding.js';
import { sections } from './section/all.js';
import { shell } from './section/shell.js';
import { failed } from './parts/states.js';
import { shortcuts } from './section/shortcuts.js';

const app = document.getElementById('app');
let frame = null; // of the page, once the key is right
let shown = null; // the section that is there

const PATIENCE = 60_000; // what was lost on the way has no answer ever

async function start() {
  try {
    await admin('markdown', { body: { text: '' }, signal: AbortSignal.timeout(PATIENCE) }); // nothing but the ingress itself is asked
    open();
  } catch (e) {
    if (closes(e)) return shut(e);
    app.replaceChildren(failed(e, start));
  }
}

function open() {
  build();
  live.start();
  show(false);
  offerOnboarding();
  admin('client-keys').then(learnClients, () => {}); // without them ids are shown
}

function build() {
  frame?.stop.abort();
  const stop = new AbortController();
  frame = { ...shell(sections, { signal: stop.signal, lock: () => { setKey(''); start(); } }), stop };
  app.replaceChildren(frame.element);
}

function shut(error) {
  leave();
  live.stop();
  frame?.stop.abort();
  frame = null;
  document.querySelectorAll('dialog').forEach((d) => d.close());
  app.replaceChildren(gate(error, (key) => { setKey(key); start(); }));
  app.querySelector('input')?.focus();
}

function leave() {
  shown?.stop.abort();
  shown?.handle?.leave?.();
  shown = null;
}

/** Shows the section of the address, or tells the one that is there that its parameters are others. */
function show(focus = true) {
  if (!frame) return;
  const { section: id, params } = place();
  const section = sections.find((s) => s.id === id) ?? sections[0];
  if (shown?.section === section && shown.handle?.update) {
    shown.handle.update(params);
    return;
  }
  leave();
  const stop = new AbortController();
  shown = { section, stop, handle: null };
  const root = frame.begin(section);
  document.title = `${t(`nav.${section.id}`)} · HydraLLM`;
  const on = (type, fn) => live.addEventListener(type, (e) => fn(e.detail), { signal: stop.signal });
  shown.handle = section.mount({ root, params, live, on, signal: stop.signal, note: (p) => note(section.id, p) }) ?? null;
  window.scrollTo(0, 0);
  if (focus) root.querySelector('h1')?.focus({ preventScroll: true });
}

window.addEventListener('hashchange', () => show());
window.addEventListener('closed', (e) => { if (frame) shut(e.detail); });
window.addEventListener('language', () => {
  if (!frame) return start();
  leave();
  build();
  show();
});

listen(Object.fromEntries(sections.map((s) => [s.letter, s.id])), {
  go: (id) => { if (frame) go(id); },
  search: () => document.querySelector('#main [type=search], #main textarea')?.focus(),
  escape: () => shown?.handle?.escape?.(),
  help: () => { if (frame) shortcuts(sections); },
});

document.documentElement.lang = language();
if (!location.hash) history.replaceState(null, '', link('overview'));
start();
