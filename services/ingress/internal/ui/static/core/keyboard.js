// Keys that work everywhere: "/" searches, "g" and a letter goes to a section, Escape closes or stops. Nothing of it while one writes.

/**
 * @param {Record<string, string>} letters the section for each letter behind "g"
 * @param {{go: (section: string) => void, search: () => void, escape: () => void, help: () => void}} actions
 */
export function listen(letters, actions) {
  let waiting = 0;
  window.addEventListener('keydown', (e) => {
    if (e.key === 'Escape' && !document.querySelector('dialog[open]')) {
      if (writes(e.target) && !e.target.closest('[data-escapes]')) e.target.blur();
      else actions.escape();
      return;
    }
    if (e.ctrlKey || e.metaKey || e.altKey || writes(e.target) || document.querySelector('dialog[open]')) return;
    const pressed = e.key.toLowerCase();
    if (Date.now() - waiting < 1500 && letters[pressed]) {
      waiting = 0;
      e.preventDefault();
      actions.go(letters[pressed]);
    } else if (pressed === 'g') waiting = Date.now();
    else if (e.key === '/') { e.preventDefault(); actions.search(); }
    else if (e.key === '?') actions.help();
  });
}

const writes = (element) => element instanceof HTMLElement && (element.isContentEditable || /^(TEXTAREA|SELECT)$/.test(element.tagName)
  || (element.tagName === 'INPUT' && !/^(checkbox|radio|range|button)$/.test(element.type)));
