// Asking a model, as any client of the gateway does.
import { ApiError, send } from '../../core/api.js';
import { readEvents } from '../../core/events.js';

const RAW = 64_000; // characters that are kept of the answer as it came

/**
 * @typedef {{text: string, reasoning: string, images: string[]}} Delta
 * @typedef {{id: string, provider: string, upstream: string, model: string, attempts: number, reason: string, warning: string}} Head
 */

/**
 * Sends a request for chat and gives what became of it. Aborting it cancels the upstream call.
 * @param {object} body
 * @param {{signal: AbortSignal, head: (head: Head) => void, text: (text: string) => void, reasoning: (text: string) => void}} on
 */
export async function chat(body, { signal, head, text, reasoning }) {
  const result = { usage: null, finish: '', raw: '', parts: [], error: null };
  const answer = await send('v1/chat/completions', { body, signal });
  head(headOf(answer.headers));
  const keep = (piece) => { if (result.raw.length < RAW) result.raw += `${piece}\n`; };
  const take = (chunk) => {
    if (chunk.error) { result.error = new ApiError(200, chunk, answer.headers.get('X-Request-Id') ?? '', 0); return; }
    if (chunk.usage) result.usage = chunk.usage;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const said = choice.delta ?? choice.message ?? {};
    const thought = said.reasoning_content ?? said.reasoning;
    if (typeof thought === 'string' && thought) reasoning(thought);
    if (typeof said.content === 'string' && said.content) text(said.content);
    else if (said.refusal) text(said.refusal);
    for (const call of said.tool_calls ?? []) text(`${call.function?.name ?? ''}${call.function?.arguments ?? ''}`);
    if (Array.isArray(said.parts)) result.parts.push(...said.parts);
    if (choice.finish_reason) result.finish = choice.finish_reason;
  };
  if (!(answer.headers.get('Content-Type') ?? '').includes('event-stream')) {
    const whole = await answer.json();
    keep(JSON.stringify(whole, null, 2));
    take(whole);
    return result;
  }
  let done = false;
  await readEvents(answer.body, (name, data) => {
    if (!name) return;
    keep(data);
    if (data === '[DONE]') { done = true; return; }
    try { take(JSON.parse(data)); } catch { /* what is no JSON says nothing */ }
  });
  if (!done && !result.error) result.error = new ApiError(0, null, answer.headers.get('X-Request-Id') ?? '', 0);
  return result;
}

/** @returns {Head} */
function headOf(headers) {
  const get = (name) => headers.get(name) ?? '';
  return {
    id: get('X-Request-Id'), provider: get('X-Gateway-Provider'), upstream: get('X-Gateway-Upstream'), model: get('X-Gateway-Model'),
    attempts: Number(get('X-Gateway-Attempts') || 0), reason: get('X-Routing-Reason'), warning: get('X-Session-Warning'),
  };
}
