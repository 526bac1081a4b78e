// Where the reader is, in the address behind #, so that links work whatever is before it: #/requests?model=auto

/** @typedef {{section: string, params: Record<string, string>}} Place */

/** @returns {Place} */
export function place() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return { section: decode(path), params: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(text) {
  try { return decodeURIComponent(text); } catch { return ''; }
}

/** The link to a place. */
export function link(section, params = {}) {
  const q = new URLSearchParams(Object.entries(params).filter(([, v]) => v !== '' && v !== null && v !== undefined)).toString();
  return `#/${section}${q ? `?${q}` : ''}`;
}

export const go = (section, params) => { location.hash = link(section, params); };

/** Writes parameters into the address without going anywhere. A section whose place has been left has nothing to say there any more. */
export function note(section, params) {
  if (place().section === section) history.replaceState(null, '', link(section, params));
}
