const KEY = 'hydrallm.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

/** 'light', 'dark', or 'auto' for what the system says. */
export function theme() {
  try { return localStorage.getItem(KEY) ?? 'auto'; } catch { return 'auto'; }
}

export function setTheme(choice) {
  try {
    if (choice === 'auto') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch { /* it holds until the page is left */ }
  apply(choice);
}

function apply(choice) {
  const dark = choice === 'dark' || (choice === 'auto' && system.matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}

system.addEventListener('change', () => apply(theme()));
apply(theme());
