// The theme that the reader has chosen, the search, and a menu that begins closed on a narrow screen. Everything else works without.
"use strict";
(() => {
  const html = document.documentElement, root = html.dataset.root;
  const stored = { get() { try { return localStorage.getItem("docs-theme"); } catch { return null; } }, set(v) { try { localStorage.setItem("docs-theme", v); } catch { /* it is for this page then */ } } };
  if (stored.get()) html.dataset.theme = stored.get();

  const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

  // score is how well a section answers a search, 0 when a word is nowhere in it. A section holds the lower case of its texts from its first search on.
  function score(section, wanted) {
    section.low ??= { p: section.p.toLowerCase(), h: section.h.toLowerCase(), t: section.t.toLowerCase() };
    const { p, h, t } = section.low;
    let sum = 0;
    for (const word of wanted) {
      const points = (h === word ? 20 : 0) + (h.includes(word) ? 12 : 0) + (p.includes(word) ? 6 : 0) + (t.includes(word) ? 1 + Math.min(3, t.split(word, 5).length - 1) : 0);
      if (points === 0) return 0;
      sum += points;
    }
    return sum / (/^(requirements|edge-cases|CHANGELOG|adr\/)/.test(section.l) ? 4 : 1); // those are about everything
  }

  function excerpt(text, wanted) {
    const low = text.toLowerCase();
    const at = Math.min(...wanted.map((w) => low.indexOf(w)).filter((i) => i >= 0), text.length);
    const from = at < 50 || at === text.length ? 0 : text.lastIndexOf(" ", at - 40) + 1;
    return (from > 0 ? "… " : "") + text.slice(from, from + 150);
  }

  function marked(parent, text, wanted) {
    const low = text.toLowerCase();
    let done = 0;
    while (done < text.length) {
      let at = -1, length = 0;
      for (const w of wanted) {
        const i = low.indexOf(w, done);
        if (i >= 0 && (at < 0 || i < at)) [at, length] = [i, w.length];
      }
      if (at < 0) break;
      parent.append(text.slice(done, at));
      parent.append(Object.assign(document.createElement("mark"), { textContent: text.slice(at, at + length) }));
      done = at + length;
    }
    parent.append(text.slice(done));
  }

  function search(input, list, count) {
    let sections;
    const load = () => (sections ??= fetch(root + "search.json").then((r) => { if (!r.ok) throw new Error(r.status); return r.json(); }).catch(() => { sections = undefined; return []; }));
    const close = () => { list.hidden = true; };
    const show = async () => {
      const wanted = words(input.value);
      if (wanted.length === 0) { count.textContent = ""; return close(); }
      const all = await load();
      if (words(input.value).join(" ") !== wanted.join(" ")) return; // something else is wanted by now
      const found = all.map((s) => [score(s, wanted), s]).filter(([n]) => n > 0).sort((a, b) => b[0] - a[0]).slice(0, 12);
      list.replaceChildren(...found.map(([, s]) => {
        const item = document.createElement("li"), link = document.createElement("a"), where = document.createElement("b"), what = document.createElement("small");
        link.href = root + s.l;
        marked(where, s.h && s.h !== s.p ? `${s.p}: ${s.h}` : s.p, wanted);
        marked(what, excerpt(s.t, wanted), wanted);
        link.append(where, what);
        item.append(link);
        return item;
      }));
      if (found.length === 0) list.append(Object.assign(document.createElement("li"), { textContent: "Nothing has all these words." }));
      count.textContent = found.length === 0 ? "Nothing found" : `${found.length} sections found`;
      list.hidden = false;
    };
    input.addEventListener("focus", load, { once: true });
    input.addEventListener("input", show);
    input.closest("search").addEventListener("keydown", (e) => {
      const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
      if (e.key === "Escape") { close(); input.focus(); }
      else if (e.key === "ArrowDown" && links.length > 0 && !list.hidden) { e.preventDefault(); links[Math.min(at + 1, links.length - 1)].focus(); }
      else if (e.key === "ArrowUp" && at >= 0) { e.preventDefault(); (links[at - 1] ?? input).focus(); }
      else if (e.key === "Enter" && document.activeElement === input && links[0] && !list.hidden) { e.preventDefault(); links[0].click(); }
    });
    list.addEventListener("click", (e) => { if (e.target.closest("a")) close(); });
    document.addEventListener("click", (e) => { if (!e.target.closest("search")) close(); });
    document.addEventListener("keydown", (e) => {
      if (e.key === "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) { e.preventDefault(); input.focus(); }
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    const input = document.getElementById("search"), theme = document.getElementById("theme");
    input.closest("search").hidden = false;
    search(input, document.getElementById("found"), document.getElementById("count"));
    const dark = () => (html.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", dark() ? "Show it light" : "Show it dark"); };
    theme.hidden = false;
    label();
    theme.addEventListener("click", () => { html.dataset.theme = dark() ? "light" : "dark"; stored.set(html.dataset.theme); label(); });
    if (matchMedia("(max-width: 760px)").matches) document.querySelector("nav details").open = false;
  });
})();
