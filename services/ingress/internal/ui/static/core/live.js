// What the gateway tells by itself: one stream for all sections, which comes back when it was lost.
import { closes, send } from './api.js';
import { readEvents } from './events.js';

const SILENCE = 40_000; // the gateway shows itself every 15 s
const LONGEST = 30_000;

class Live extends EventTarget {
  status = null;
  hello = null;
  faults = {}; // what can't be read, by its part
  state = 'begun'; // begun, up, down
  #stop = null;
  #wake = null;
  #heard = 0;

  start() {
    if (this.#stop) return;
    const stop = new AbortController();
    this.#stop = stop;
    document.addEventListener('visibilitychange', () => this.#look(), { signal: stop.signal });
    window.addEventListener('online', () => this.#wake?.(), { signal: stop.signal });
    this.#run(stop.signal);
  }

  stop() {
    this.#stop?.abort();
    this.#stop = null;
    this.state = 'begun';
    this.status = this.hello = null;
    this.faults = {};
  }

  // A browser that slept does not know it: the clock does.
  #look() {
    if (!document.hidden && Date.now() - this.#heard > SILENCE) {
      this.#attempt?.abort();
      this.#wake?.();
    }
  }

  #attempt = null;

  async #run(signal) {
    let tries = 0;
    while (!signal.aborted) {
      const attempt = new AbortController();
      this.#attempt = attempt;
      const end = () => attempt.abort();
      signal.addEventListener('abort', end);
      this.#heard = Date.now();
      const watch = setInterval(() => { if (Date.now() - this.#heard > SILENCE) end(); }, 5000);
      try {
        const answer = await send('v1/admin/stream', { signal: attempt.signal });
        await readEvents(answer.body, (name, data) => {
          this.#heard = Date.now();
          if (name) { tries = 0; this.#take(name, data); }
        });
      } catch (e) {
        if (e.status && closes(e)) { signal.removeEventListener('abort', end); clearInterval(watch); return; }
      }
      clearInterval(watch);
      signal.removeEventListener('abort', end);
      if (signal.aborted) return;
      this.#set('down');
      const pause = Math.min(LONGEST, 1000 * 2 ** Math.min(tries++, 5)) * (0.75 + Math.random() / 2);
      await new Promise((done) => { this.#wake = done; setTimeout(done, pause); });
    }
  }

  #take(name, data) {
    let value;
    try { value = JSON.parse(data); } catch { return; }
    if (name === 'hello') {
      const again = this.state === 'down';
      this.hello = value;
      this.faults = {};
      this.#set('up');
      if (again) this.#tell('refresh');
    } else if (name === 'status') this.status = value;
    else if (name === 'fault') {
      if (value.message === null) delete this.faults[value.part];
      else this.faults[value.part] = value;
    } else if (name === 'reset') return this.#tell('refresh');
    this.#tell(name, value);
  }

  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.#tell('connection');
  }

  #tell(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }
}

export const live = new Live();
