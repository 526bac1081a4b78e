// What the status of the gateway means.
import { minute } from './format.js';
import { t } from './i18n.js';

/** @typedef {{state: 'ok'|'warn'|'bad'|'idle', text: string, until?: number}} State */

const soonest = (list) => (list.length ? Math.min(...list) : undefined);

/** When the keys of a provider can be used again, the first of them. */
function keysRestUntil(statistics) {
  const times = [];
  for (const key of statistics?.keys ?? []) {
    if (key.cooldown_until && key.cooldown_remaining > 0) times.push(new Date(key.cooldown_until).getTime());
    for (const c of key.model_cooldowns ?? []) times.push(new Date(c.cooldown_until).getTime());
  }
  return soonest(times.filter((at) => at > Date.now()));
}

/** Circuits that are not closed, by their names, those of one provider if it is named. */
export function openCircuits(status, provider) {
  return Object.entries(status.circuits ?? {}).filter(([name, c]) => c.state !== 'closed' && (!provider || status.channels?.[name]?.provider === provider));
}

/** When an open circuit lets a call through. */
export const circuitUntil = (circuit) => Date.now() + circuit.remaining / 1e6;

/** @returns {State} of a circuit */
export function circuitState(circuit) {
  if (circuit.state === 'open') return { state: 'bad', text: t('circuit.open'), until: circuitUntil(circuit) };
  if (circuit.state === 'half-open') return { state: 'warn', text: t('circuit.halfopen') };
  return { state: 'ok', text: t('circuit.closed') };
}

/** Whether a call to a provider would be made now: one upstream of it is enough. */
function serves(status, id) {
  const p = status.providers[id];
  return p.healthy || (!p.unreachable_since && Object.values(status.channels ?? {}).some((c) => c.provider === id && c.usable));
}

/** @returns {State} of a provider */
export function providerState(status, id) {
  const p = status.providers?.[id] ?? {};
  const open = openCircuits(status, id).filter(([, c]) => c.state === 'open');
  if (p.healthy) return { state: 'ok', text: t('provider.healthy') };
  if (p.unreachable_since) return { state: 'bad', text: t('provider.unreachable', { time: minute(p.unreachable_since) }) };
  if (open.length) return { state: serves(status, id) ? 'warn' : 'bad', text: t('circuit.open'), until: soonest(open.map(([, c]) => circuitUntil(c))) };
  if (p.total_keys === 0 && !serves(status, id)) return { state: 'idle', text: t('provider.nokeys') };
  if (p.failed_keys === p.total_keys) return { state: 'bad', text: t('provider.refused') };
  if (p.usable_keys === 0) {
    const until = keysRestUntil(status.key_statistics?.[id]);
    if (until) return { state: 'warn', text: t('provider.rests'), until };
  }
  return { state: 'warn', text: p.problem || t('provider.unwell') };
}

/** The answer to an operator's first question: is it serving? @returns {State} */
export function summary(live) {
  if (live.state === 'down') return { state: 'warn', text: t('health.lost') };
  if (live.faults.status) return { state: 'bad', text: t('health.nodispatcher') };
  if (!live.status) return { state: 'idle', text: t('health.asking') };
  const ids = [...Object.keys(live.status.providers ?? {}), ...Object.keys(live.status.agents ?? {}).filter((a) => !live.status.providers?.[a])];
  const states = ids.map((id) => ({ id, ...(live.status.providers?.[id] ? providerState(live.status, id) : agentState(live.status.agents[id])) }));
  const ill = states.filter((s) => s.state === 'warn' || s.state === 'bad');
  if (!states.some((s) => s.state === 'ok' || (live.status.providers?.[s.id] && serves(live.status, s.id)))) {
    return { state: 'bad', text: t(states.some((s) => s.state !== 'idle') ? 'health.none' : 'health.noprovider') };
  }
  if (live.faults.logs || live.faults.requests) return { state: 'warn', text: t('health.database') };
  if (!ill.length) return { state: 'ok', text: t('health.ok') };
  if (ill.length === 1) return { state: 'warn', text: t('health.one', { name: ill[0].id, problem: ill[0].text }), until: ill[0].until };
  return { state: 'warn', text: t('health.some', { n: ill.length, names: ill.slice(0, 2).map((s) => s.id).join(', ') + (ill.length > 2 ? '…' : '') }) };
}

/** @returns {State} of a local engine */
export function agentState(agent) {
  return agent.healthy ? { state: 'ok', text: t('provider.healthy') } : { state: 'idle', text: t('provider.away') };
}
