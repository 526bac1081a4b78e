// Charts as inline SVG, each with a table that says the same.
import { h, s } from '../core/dom.js';
import { day, duration, minute, number } from '../core/format.js';
import { t } from '../core/i18n.js';

const H = 220, LEFT = 46, BOTTOM = 22, TOP = 8;

// On a phone the same text needs more of the width.
const wide = () => (window.innerWidth < 720 ? 380 : 760);

/** The next round number. */
function ceiling(n) {
  const size = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 4, 6, 8, 10].map((f) => f * size).find((c) => c >= n);
}

function frame(label, most, format, sums) {
  const W = wide();
  const parts = [];
  for (let i = 0; i <= 4; i++) {
    const y = H - BOTTOM - (i * (H - BOTTOM - TOP)) / 4;
    parts.push(s('line', { class: 'gridline', x1: LEFT, x2: W, y1: y, y2: y }));
    if (i % 2 === 0) parts.push(s('text', { x: 0, y: y + 4 }, format((most * i) / 4)));
  }
  const n = sums.points.length, width = (W - LEFT) / n, days = n * sums.step_ms > 2 * 86_400_000;
  for (let i = 0; i < 4; i++) {
    const k = Math.floor((i * n) / 4), at = new Date(new Date(sums.from).getTime() + k * sums.step_ms);
    parts.push(s('text', { x: LEFT + k * width, y: H - 4 }, days ? day(at) : minute(at)));
  }
  return { parts, width, svg: (...more) => s('svg', { class: 'chart', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': label }, parts, more) };
}

const y = (value, most) => H - BOTTOM - (value / most) * (H - BOTTOM - TOP);

/** Requests over time as stacked bars. */
export function requestBars(sums) {
  const most = ceiling(Math.max(4, ...sums.points.map((p) => p.requests)));
  const f = frame(t('chart.requests'), most, number, sums);
  const bars = sums.points.flatMap((p, i) => {
    let base = 0;
    return [['a', p.requests - p.failover - p.failed - p.cancelled], ['b', p.failover], ['d', p.cancelled], ['c', p.failed]].map(([kind, n]) => {
      if (n <= 0) return null;
      const top = y(base + n, most), height = y(base, most) - top;
      base += n;
      return s('rect', { class: kind, x: LEFT + i * f.width + f.width * 0.08, y: top, width: f.width * 0.84, height: Math.max(height, 1), rx: 1 });
    });
  });
  return f.svg(bars.filter(Boolean));
}

/** Times to the first token as lines; where there were no answers there is none. */
export function latencyLines(sums) {
  const most = ceiling(Math.max(100, ...sums.points.map((p) => p.first_token_p95_ms)));
  const f = frame(t('chart.latency'), most, (n) => (n ? duration(n) : '0'), sums);
  const path = (name) => {
    let text = '', pen = false;
    sums.points.forEach((p, i) => {
      if (p[name]) text += `${pen ? 'L' : 'M'}${(LEFT + (i + 0.5) * f.width).toFixed(1)} ${y(p[name], most).toFixed(1)}`;
      pen = Boolean(p[name]);
    });
    return text;
  };
  // A point without neighbours is no line.
  const dots = (name, kind) => sums.points.map((p, i) => (p[name] && !sums.points[i - 1]?.[name] && !sums.points[i + 1]?.[name]
    ? s('circle', { class: kind, cx: LEFT + (i + 0.5) * f.width, cy: y(p[name], most), r: 2.5 }) : null)).filter(Boolean);
  return f.svg(s('path', { class: 'line two', d: path('first_token_p95_ms') }), dots('first_token_p95_ms', 'dot two'), s('path', { class: 'line', d: path('first_token_ms') }), dots('first_token_ms', 'dot'));
}

/** The same as a table, folded. */
export function asTable(label, sums, columns) {
  const body = h('tbody');
  const details = h('details', { class: 'table', on: { toggle: () => {
    if (!details.open || body.childElementCount) return;
    sums.points.forEach((p, i) => {
      const at = new Date(new Date(sums.from).getTime() + i * sums.step_ms);
      if (p.requests) body.append(h('tr', null, h('th', { scope: 'row' }, `${day(at)} ${minute(at)}`), columns.map(([, value]) => h('td', { class: 'num' }, value(p)))));
    });
  } } }, h('summary', null, t('chart.table')),
  h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, h('table', null, h('thead', null, h('tr', null, h('th', { scope: 'col' }, t('col.time')), columns.map(([name]) => h('th', { class: 'num', scope: 'col' }, name)))), body)));
  return details;
}

/** Shares of a whole as bars, the largest first, with the rest summed up. */
export function shares(items, format, rest) {
  const shown = items.slice(0, 5), others = items.slice(5);
  if (others.length) shown.push({ name: rest(others.length), value: others.reduce((n, o) => n + o.value, 0), other: true });
  const most = Math.max(1, ...shown.map((i) => i.value));
  return h('div', { class: 'bars' }, shown.map((item, i) => h('div', { class: 'bar' }, h('span', null, item.label ?? item.name), h('span', null, format(item.value)),
    h('span', { class: 'track' }, h('i', { class: item.other ? 'c0' : `c${(i % 4) + 1}`, style: { width: `${(item.value / most) * 100}%` } })))));
}
