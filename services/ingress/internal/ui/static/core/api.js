// Talking to the gateway. Addresses are relative to the page, so that they work below whatever prefix a proxy puts before them.

const root = new URL('../', document.baseURI);
const KEY = 'hydrallm.admin-key';
let key = stored();

function stored() {
  try { return sessionStorage.getItem(KEY) ?? ''; } catch { return ''; }
}

/** The admin key of this tab, '' for none. It is kept until the tab is closed. */
export const adminKey = () => key;

export function setKey(value) {
  key = value;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch { /* it holds until the page is left */ }
}

/** What the gateway refused, or that it does not answer (status 0). since is when that began, as a time in milliseconds, for what may pass. */
export class ApiError extends Error {
  since = 0;

  constructor(status, body, id, retryAfter) {
    super(body?.error?.message ?? body?.detail ?? '');
    this.status = status;
    this.code = body?.error?.code ?? '';
    this.id = id;
    this.retryAfter = retryAfter;
  }
}

/** Whether an error may be over when the same is asked again: no answer, or none of what should have answered. */
export const passes = (error) => error instanceof ApiError && [0, 502, 503, 504].includes(error.status);

const failing = new Map(); // paths without their queries, and since when they fail

/** Takes in how a request went, and gives the error. */
function note(path, error) {
  const [route] = path.split('?');
  if (!error || !passes(error)) {
    failing.delete(route);
    return error;
  }
  if (!failing.has(route)) failing.set(route, Date.now());
  error.since = failing.get(route);
  return error;
}

/** The address of a route of the gateway. */
export const address = (path) => new URL(path, root).href;

/** Headers that say who asks. Routes of clients take the key in another one. */
export function credentials(path) {
  if (!key) return {};
  return path.startsWith('v1/admin/') ? { 'X-Admin-Key': key } : { Authorization: `Bearer ${key}` };
}

/**
 * Sends a request and gives the answer, whose status is a good one.
 * @param {string} path below the root of the gateway, without a slash before it
 * @param {{method?: string, body?: any, signal?: AbortSignal, headers?: Record<string, string>}} [options] body becomes JSON
 * @returns {Promise<Response>}
 */
export async function send(path, { method, body, signal, headers } = {}) {
  const init = { method: method ?? (body === undefined ? 'GET' : 'POST'), signal, headers: { ...credentials(path), ...headers }, cache: 'no-store' };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers['Content-Type'] = 'application/json';
  }
  let answer;
  try {
    answer = await fetch(address(path), init);
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw note(path, new ApiError(0, null, '', 0));
  }
  if (answer.ok) {
    note(path);
    return answer;
  }
  const text = await answer.text().catch(() => '');
  const error = new ApiError(answer.status, parse(text), answer.headers.get('X-Request-Id') ?? '', Number(answer.headers.get('Retry-After') ?? 0));
  if (path.startsWith('v1/admin/') && closes(error)) window.dispatchEvent(new CustomEvent('closed', { detail: error }));
  throw note(path, error);
}

function parse(text) {
  try { return JSON.parse(text); } catch { return null; }
}

/** Whether an error is about the admin key, and so about all that operators may ask. */
export function closes(error) {
  return error.status === 401 || error.code === 'admin_disabled' || error.code === 'too_many_attempts';
}

/** Sends a request and reads JSON. */
export async function ask(path, options) {
  return (await send(path, options)).json();
}

/** Asks an admin route. */
export const admin = (path, options) => ask(`v1/admin/${path}`, options);

/** A path with parameters; empty ones are left out. */
export function withQuery(path, params) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== '' && value !== null && value !== undefined) q.set(name, value);
  const text = q.toString();
  return text ? `${path}?${text}` : path;
}
