// A long list of which only the rows near what is seen are in the page. The window is what scrolls. Rows may have any height: those that were measured count
// with theirs, the others with the usual one.
import { h } from '../core/dom.js';

const USUAL = 33, AROUND = 800; // pixels

/**
 * @template T
 * @param {(item: T) => HTMLElement} render
 * @param {(item: T) => any} key
 */
export function windowed(render, key) {
  let items = [], drawn = new Map(), heights = new Map(), wanted = 0;
  const before = h('div', { 'aria-hidden': 'true' }), after = h('div', { 'aria-hidden': 'true' }), body = h('div');
  const element = h('div', { class: 'log' }, before, body, after);
  const height = (item) => heights.get(key(item)) ?? USUAL;
  const sizes = new ResizeObserver((all) => { for (const e of all) if (e.target.isConnected) heights.set(e.target.rowKey, e.target.getBoundingClientRect().height); });

  function draw() {
    wanted = 0;
    const top = -element.getBoundingClientRect().top - AROUND, bottom = top + window.innerHeight + 2 * AROUND;
    let y = 0, i = 0;
    while (i < items.length && y + height(items[i]) < top) y += height(items[i++]);
    const above = y, now = new Map();
    let at = null;
    for (; i < items.length && y < bottom; i++) {
      const k = key(items[i]);
      let row = drawn.get(k);
      if (!row) {
        row = render(items[i]);
        row.rowKey = k;
        sizes.observe(row);
      }
      now.set(k, row);
      const next = at ? at.nextSibling : body.firstChild;
      if (next !== row) body.insertBefore(row, next);
      at = row;
      y += height(items[i]);
    }
    for (const [k, row] of drawn) {
      if (now.has(k)) continue;
      sizes.unobserve(row);
      row.remove();
    }
    drawn = now;
    let below = 0;
    for (; i < items.length; i++) below += height(items[i]);
    before.style.height = `${above}px`;
    after.style.height = `${below}px`;
  }

  const soon = () => { wanted ||= requestAnimationFrame(draw); };
  window.addEventListener('scroll', soon, { passive: true });
  window.addEventListener('resize', soon);
  return {
    element,
    /** Shows items, those above what is seen without moving it. */
    show(list) {
      const top = element.getBoundingClientRect().top;
      const seen = top < 0 ? [...drawn.entries()].find(([, row]) => row.getBoundingClientRect().bottom > 0) : null;
      const was = seen?.[1].getBoundingClientRect().top;
      items = list;
      draw();
      if (!seen) return;
      let y = 0;
      for (const item of items) { if (key(item) === seen[0]) break; y += height(item); }
      window.scrollBy(0, element.getBoundingClientRect().top + y - was);
      draw();
    },
    stop() {
      window.removeEventListener('scroll', soon);
      window.removeEventListener('resize', soon);
      sizes.disconnect();
      if (wanted) cancelAnimationFrame(wanted);
    },
  };
}
