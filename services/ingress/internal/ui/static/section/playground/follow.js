// An answer on its way into a conversation.
import { t } from '../../core/i18n.js';
import { chat } from './chat.js';

/**
 * Asks, and shows the answer as it comes. Who reads at the end of the conversation stays there; who reads above is not moved.
 * @param {HTMLElement} talk
 * @param {import('./turns.js').Answer} answer
 * @param {object} body
 * @param {{signal: AbortSignal, began: (id: string) => void}} on began gets the id of the request
 */
export async function follow(talk, answer, body, { signal, began }) {
  const outcome = { usage: null, finish: '', error: null, stopped: false };
  const grow = (add) => {
    const end = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
    add();
    if (end) talk.scrollTop = talk.scrollHeight;
  };
  try {
    Object.assign(outcome, await chat(body, {
      signal,
      head: (head) => { answer.head = head; began(head.id); answer.showMeta(t('play.streaming')); },
      text: (piece) => grow(() => answer.addText(piece)),
      reasoning: (piece) => grow(() => answer.addThought(piece)),
    }));
  } catch (e) {
    if (e.name !== 'AbortError') outcome.error = e;
  }
  if (signal.aborted) {
    outcome.stopped = true;
    outcome.error = null;
  }
  if (outcome.error?.id) began(outcome.error.id);
  grow(() => answer.end(outcome));
  if (outcome.parts?.length) answer.parts(outcome.parts);
  return outcome;
}
