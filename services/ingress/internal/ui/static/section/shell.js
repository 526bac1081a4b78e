// What is around a section: navigation, switches, and the line about a lost connection.
import { adminKey } from '../core/api.js';
import { h, s, set } from '../core/dom.js';
import { left } from '../core/format.js';
import { language, languages, setLanguage, t, tn } from '../core/i18n.js';
import { live } from '../core/live.js';
import { link } from '../core/router.js';
import { setTheme, theme } from '../core/theme.js';
import { announce } from '../parts/toast.js';

const MARK = 'M10 18v-5M10 13C10 8 4 9 4 3M10 13c0-5 6-4 6-10M10 13V4';

export const brand = () => h('div', { class: 'brand' }, s('svg', { viewBox: '0 0 20 20', fill: 'none', stroke: 'currentColor', 'stroke-width': 2, 'stroke-linecap': 'round', 'aria-hidden': 'true' }, s('path', { d: MARK })), 'HydraLLM');

/** Buttons of which one is pressed. */
export function segments(label, choices, current, choose) {
  const group = h('div', { class: 'seg', role: 'group', 'aria-label': label });
  const show = (value) => set(group, choices.map(([id, text, lang]) => h('button', {
    type: 'button', lang, 'aria-pressed': String(id === value), data: { choice: id },
    on: { click: () => { show(id); group.querySelector(`[data-choice="${id}"]`).focus(); choose(id); } },
  }, text)));
  show(current);
  return group;
}

export const languageSwitch = () => segments(t('shell.language'), Object.entries(languages).map(([id, name]) => [id, name, id]), language(), setLanguage);
export const themeSwitch = () => segments(t('shell.theme'), ['auto', 'light', 'dark'].map((id) => [id, t(`theme.${id}`)]), theme(), setTheme);

const PRIMARY = 4; // sections that have a place on a phone

/** The frame of the page, until signal ends. */
export function shell(sections, { lock, signal }) {
  const links = new Map();
  const nav = h('ul', { class: 'nav' }, sections.map((section, i) => {
    const a = h('a', { href: link(section.id), data: { section: section.id } }, t(`nav.${section.id}`));
    links.set(section.id, a);
    return h('li', { class: i < PRIMARY ? '' : 'extra' }, a);
  }));
  const more = h('button', { type: 'button', 'aria-expanded': 'false', on: { click: () => toggle() } }, t('shell.more'));
  nav.append(h('li', { class: 'more' }, more));
  const about = h('p', { data: { test: 'about' } });
  const side = h('nav', { class: 'side', 'aria-label': t('shell.sections') }, brand(), nav, h('div', { class: 'foot' }, about,
    h('div', { class: 'switches' }, languageSwitch(), themeSwitch()),
    adminKey() && h('button', { class: 'link quiet', type: 'button', data: { test: 'lock' }, on: { click: lock } }, t('shell.lock'))));
  const toggle = (open = !side.classList.contains('open')) => {
    side.classList.toggle('open', open);
    more.setAttribute('aria-expanded', String(open));
  };
  const lost = h('div', { class: 'lost', role: 'status', hidden: true }, t('shell.lost'));
  const main = h('main', { class: 'page', id: 'main', tabindex: '-1' });
  const element = h('div', { class: 'app' },
    h('a', { class: 'skiplink', href: '#main', on: { click: (e) => { e.preventDefault(); main.focus(); } } }, t('shell.skip')),
    side, h('div', null, lost, main));

  const connection = () => {
    lost.hidden = live.state !== 'down';
    if (!lost.hidden) announce(t('shell.lost'));
    tell();
  };
  const tell = () => {
    const { hello, status } = live;
    const n = status?.dispatchers?.length;
    about.textContent = hello ? [hello.version, t('shell.up', { time: left((Date.now() - new Date(hello.started_at)) / 1000) }), n && tn('shell.dispatchers', n)].filter(Boolean).join(' · ') : '';
  };
  for (const [name, fn] of [['connection', connection], ['hello', tell], ['status', tell]]) live.addEventListener(name, fn, { signal });
  lost.hidden = live.state !== 'down';
  tell();

  return {
    element,
    /** Makes room for a section. */
    begin(section) {
      for (const [id, a] of links) {
        if (id === section.id) a.setAttribute('aria-current', 'page');
        else a.removeAttribute('aria-current');
      }
      toggle(false);
      main.className = section.full ? 'page full' : 'page';
      main.dataset.section = section.id;
      main.replaceChildren();
      return main;
    },
  };
}

/** The head of a section. The heading takes the focus when one comes here. */
export function head(title, ...more) {
  return h('header', { class: 'head' }, h('h1', { tabindex: '-1' }, title), more);
}
