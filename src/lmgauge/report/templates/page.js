"use strict";
/* The page's script: paints passages when they come into view, filters them, sorts tables, shows what a token cost.
   No library, no request. Column strings are "bytes of a number:base64", see report/packing.py. */
(() => {
  const INFINITE = 65535;
  const KINDS = ["", "unseen word (<unk>)", "line end", "unseen word, spelled"];
  const COLUMNS = { rank: "rank", entropy: "entropy", kl: "KL from the base", context: "context used", occurrences: "times in training", spelling: "of these, its letters", separator: "of these, the white space before it" };
  const tip = document.getElementById("tip");

  const numbers = (packed) => {
    const [size, data] = packed.split(":");
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0)).buffer;
    return { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[size].from(new { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array }[size](bytes));
  };
  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const inBits = (steps, step) => (steps === INFINITE ? Infinity : steps * step);
  const shown = (bits) => (bits === Infinity ? "∞" : bits.toFixed(2));

  /* Return the most probable tokens of each event, as [word, probability]. */
  const unpackTops = (tops) => {
    if (!tops || Array.isArray(tops)) return tops;
    const ids = numbers(tops.ids), bits = numbers(tops.bits);
    const all = Array.from(ids, (id, i) => [tops.words[id], 2 ** (-bits[i] / 1000)]);
    return Array.from({ length: all.length / tops.each }, (_, i) => all.slice(i * tops.each, (i + 1) * tops.each).filter(([, p]) => p > 1e-17));
  };
  /* Return the visible tokens of a run: events that end at the same place (parts of one character) are one. */
  const unpack = (run, step, fine) => {
    const steps = numbers(run.ends), bits = numbers(run.bits), kinds = numbers(run.kinds);
    const columns = Object.entries(run.columns).map(([name, packed]) => [name, numbers(packed)]);
    const far = columns.find(([name]) => name === "kl")?.[1];
    const cuts = Object.entries(run.cuts).map(([name, packed]) => [name, numbers(packed)]);
    const tokens = [], tops = unpackTops(run.tops);
    let end = 0, from = 0, sum = 0, kl = 0, first = 0;
    for (let i = 0; i < steps.length; i++) {
      end += steps[i];
      sum += inBits(bits[i], step);
      if (far) kl += inBits(far[i], fine);
      const waits = end === from && kinds[i] !== 2 && i + 1 < steps.length;
      if (waits) continue;
      const values = columns.map(([name, all]) => [name, all.slice(first, i + 1)]);
      const codes = new Map(cuts.map(([name, all]) => [name, all.slice(first, i + 1)]));
      tokens.push({ from, end, bits: sum, kl, kind: kinds[i], events: i + 1 - first, values, codes, tops: tops?.slice(first, i + 1) });
      from = end; sum = kl = 0; first = i + 1;
    }
    return tokens;
  };

  /* Return stretches of text between the ends that both runs have, with what each run pays for them. */
  const align = (a, b) => {
    const keys = (tokens) => tokens.map((token) => 2 * token.end + (token.kind === 2));
    const inB = new Set(keys(b));
    const shared = keys(a).filter((key) => inB.has(key));
    const spans = [];
    let i = 0, j = 0, from = 0;
    for (const key of shared) {
      const of = [[], []];
      for (; i < a.length && 2 * a[i].end + (a[i].kind === 2) <= key; i++) of[0].push(a[i]);
      for (; j < b.length && 2 * b[j].end + (b[j].kind === 2) <= key; j++) of[1].push(b[j]);
      spans.push({ from, end: Math.floor(key / 2), of });
      from = Math.floor(key / 2);
    }
    return spans;
  };
  const total = (tokens) => tokens.reduce((sum, token) => sum + token.bits, 0);

  /* A scale is one for all runs of the page: the width of a color in bits. */
  const nice = (value, steps) => steps.find((step) => step >= value) ?? steps[steps.length - 1];
  const level = (bits, width) => Math.min(12, Math.floor(bits / width));
  const side = (difference, width) => {
    const size = Math.min(5, Math.ceil(Math.abs(difference) / width - 0.5));
    return size ? (difference > 0 ? "w" : "b") + size : "";
  };

  class Passages {
    constructor(root, data) {
      this.root = root;
      this.data = data;
      this.color = data.names.length > 1 ? "difference" : "0";
      this.chosen = { cut: "", label: "" };
      this.painted = new WeakMap();
      this.tokens = new Map();
      this.setScale();
    }
    runs(segment) {
      if (!this.tokens.has(segment)) this.tokens.set(segment, this.data.passages[segment].map((run) => unpack(run, this.data.step, this.data.fine)));
      return this.tokens.get(segment);
    }
    setScale() {
      const sample = [], apart = [], far = [];
      for (const segment of Object.keys(this.data.passages).slice(0, 24)) {
        const runs = this.runs(segment);
        for (const run of runs) for (const token of run) {
          if (token.bits !== Infinity) sample.push(token.bits);
          if (token.kl !== Infinity) far.push(token.kl);
        }
        if (runs.length > 1) for (const span of align(runs[0], runs[1])) {
          const difference = Math.abs(total(span.of[1]) - total(span.of[0]));
          if (difference < Infinity) apart.push(difference);
        }
      }
      const high = (values, share) => (values.length ? values.sort((x, y) => x - y)[Math.floor(share * (values.length - 1))] : 1);
      this.width = nice(high(sample, 0.98) / 12, [0.1, 0.25, 0.5, 1, 1.5, 2]);
      this.far = nice(high(far, 0.98) / 12, [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1]);
      this.apart = nice(high(apart, 0.97) / 5, [0.05, 0.1, 0.25, 0.5, 1, 2]);
    }
    paint(article) {
      const segment = article.dataset.segment, target = article.querySelector(".text");
      const state = `${this.color}|${this.chosen.cut}|${this.chosen.label}`;
      if (this.painted.get(article) === state || !this.data.passages[segment]) return;
      this.painted.set(article, state);
      const text = target.dataset.plain ?? target.textContent;
      target.dataset.plain = text;
      const pieces = document.createDocumentFragment();
      const runs = this.runs(segment);
      if (this.color === "difference" && runs.length > 1) this.paintDifference(pieces, text, runs);
      else this.paintRun(pieces, text, runs[Number(this.color.replace("kl", ""))] ?? runs[0] ?? []);
      target.replaceChildren(pieces);
    }
    /* Return a piece of text in the color of what it cost; white space before a word stays as it is. */
    piece(pieces, text, name) {
      const lead = text.length - text.trimStart().length;
      const plain = lead < text.length ? lead : 0;
      if (plain) pieces.append(text.slice(0, plain));
      const made = element("span", name, text.slice(plain));
      made.tabIndex = -1;
      pieces.append(made);
      return made;
    }
    isChosen(token) {
      const { cut, label } = this.chosen;
      if (!cut) return false;
      const code = this.data.cuts[cut].indexOf(label);
      return Boolean(token.codes.get(cut)?.includes(code));
    }
    /* Colors are of what tokens cost or, kl0 and kl1, of how far the run's model is from its base there. */
    paintRun(pieces, text, tokens) {
      const far = this.color.startsWith("kl"), width = far ? this.far : this.width;
      for (const token of tokens) {
        const value = far ? token.kl : token.bits;
        const shade = value === Infinity ? 12 : level(value, width);
        const piece = this.piece(pieces, text.slice(token.from, token.end), shade ? `c${shade}` : "");
        if (token.bits === Infinity) piece.classList.add("infinite");
        if (token.kind === 2) piece.classList.add("end");
        if (this.isChosen(token)) piece.classList.add("is");
        piece.about = () => [this.described(token, text)];
      }
    }
    paintDifference(pieces, text, [a, b]) {
      for (const span of align(a, b)) {
        const difference = total(span.of[1]) - total(span.of[0]);
        const shade = Number.isNaN(difference) ? "" : difference === Infinity ? "w5" : difference === -Infinity ? "b5" : side(difference, this.apart);
        const whole = this.piece(pieces, text.slice(span.from, span.end), shade);
        const starts = span.of.map((tokens) => new Set(tokens.map((token) => token.from)));
        const inside = [...new Set([...starts[0], ...starts[1]])].filter((at) => at > span.from && at < span.end);
        if (inside.length) {
          const first = span.end - whole.textContent.length;
          const bounds = [first, ...inside.sort((x, y) => x - y).filter((at) => at > first), span.end];
          whole.replaceChildren(...bounds.slice(0, -1).map((from, i) => {
            const part = element("span", "", text.slice(from, bounds[i + 1]));
            if (i && starts[0].has(from)) part.classList.add("first-a");
            if (i && starts[1].has(from)) part.classList.add("first-b");
            return part;
          }));
        }
        if (span.of.flat().some((token) => token.kind === 2)) whole.classList.add("end");
        if (span.of.flat().some((token) => this.isChosen(token))) whole.classList.add("is");
        const counted = (tokens) => `${shown(total(tokens))} bits` + (tokens.length > 1 ? ` in ${tokens.length} tokens` : "");
        whole.about = () => [
          span.from === span.end ? "line end" : JSON.stringify(text.slice(span.from, span.end)),
          ...this.data.names.map((name, i) => `${name}: ${counted(span.of[i])}`),
          `difference: ${Number.isNaN(difference) ? "–" : (difference > 0 ? "+" : "") + shown(difference)} bits`,
        ];
        pieces.append(whole);
      }
    }
    described(token, text) {
      const name = token.from === token.end ? "line end" : JSON.stringify(text.slice(token.from, token.end));
      const lines = [`${name}: ${shown(token.bits)} bits` + (token.bits < 64 ? `, p = ${Number((2 ** -token.bits).toPrecision(2))}` : "")];
      if (KINDS[token.kind] && token.kind !== 2) lines.push(KINDS[token.kind]);
      if (token.events > 1) lines.push(`${token.events} tokens`);
      for (const [column, values] of token.values) {
        const none = 2 ** (8 * values.BYTES_PER_ELEMENT) - 1;
        const step = { entropy: this.data.step, spelling: this.data.step, separator: this.data.step, kl: this.data.fine }[column];
        if ((column === "spelling" || column === "separator") && !values.some((v) => v)) continue;
        const written = (v) => (v === INFINITE ? "∞" : (v * step).toFixed(column === "kl" ? 3 : 2));
        const words = [...values].filter((v) => column === "kl" || v !== none).map((v) => (step ? `${written(v)} bits` : v.toLocaleString("en")));
        if (words.length) lines.push(`${COLUMNS[column] ?? column}: ${words.join(", ")}`);
      }
      for (const [cut, codes] of token.codes) lines.push(`${cut}: ${this.data.cuts[cut][codes[codes.length - 1]] ?? ""}`);
      for (const top of (token.tops ?? []).filter((top) => top.length)) lines.push("most probable: " + top.map(([word, p]) => `${JSON.stringify(word)} ${Number(p.toPrecision(2))}`).join(", "));
      return lines.join("\n");
    }
    legend(target) {
      target.replaceChildren();
      const add = (name, text) => target.append(element("span", `swatch ${name}`, text));
      if (this.color === "difference") {
        target.append(element("span", "title", `bits more or less than ${this.data.names[0]}:`));
        for (let i = 5; i > 0; i--) add(`b${i}`, `−${+(i * this.apart).toFixed(2)}${i === 5 ? " and less" : ""}`);
        add("", "0");
        for (let i = 1; i < 6; i++) add(`w${i}`, `+${+(i * this.apart).toFixed(2)}${i === 5 ? " and more" : ""}`);
        target.append(element("span", "title", ` ticks mark where tokens start: above, ${this.data.names[0]}; below, ${this.data.names[1]}`));
      } else {
        const far = this.color.startsWith("kl"), width = far ? this.far : this.width;
        target.append(element("span", "title", far ? "KL divergence from the base, bits:" : "bits:"));
        for (let i = 0; i <= 12; i++) add(i ? `c${i}` : "", `${+(i * width).toFixed(3)}${i === 12 ? " and more" : ""}`);
      }
      target.hidden = false;
    }
  }

  /* --- what a token cost, at the pointer or the focus ----------------------------------------------------------- */
  let current = null;
  const place = () => {
    const box = current.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const below = box.bottom + own.height + 8 < innerHeight;
    tip.style.setProperty("left", `${Math.max(8, Math.min(box.left, innerWidth - own.width - 8))}px`);
    tip.style.setProperty("top", `${below ? box.bottom + 6 : Math.max(8, box.top - own.height - 6)}px`);
  };
  const describe = (target) => {
    if (!tip) return;
    const piece = target.closest?.(".text > span");
    current = piece?.about ? piece : null;
    tip.hidden = !current;
    if (!current) return;
    tip.textContent = current.about().join("\n");
    place();
  };
  document.addEventListener("pointerover", (event) => describe(event.target));
  document.addEventListener("focusin", (event) => describe(event.target));
  document.addEventListener("scroll", () => {
    if (current && current === document.activeElement) place();
    else if (tip) tip.hidden = true;
  }, { passive: true });
  document.addEventListener("keydown", (event) => {
    const text = event.target.closest?.(".passage .text");
    if (!text) return;
    const pieces = [...text.children];
    const now = pieces.indexOf(event.target.closest(".text > span"));
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Enter: Math.max(0, now), Home: 0, End: pieces.length - 1 }[event.key];
    if (event.key === "Escape") { tip.hidden = true; text.focus(); }
    if (to === undefined || !pieces[to] || (now < 0 && event.key !== "Enter")) return;
    event.preventDefault();
    pieces[to].focus();
  });

  /* --- folded parts: opened by the button, and by what leads into them ---------------------------------------------- */
  const folds = [...document.querySelectorAll("details.fold")];
  const unfold = (target) => { const fold = target?.closest("details.fold"); if (fold) fold.open = true; };
  const fromPart = () => { if (/^#part-\d+$/.test(location.hash)) unfold(document.querySelector(location.hash)); };
  addEventListener("hashchange", fromPart);
  fromPart();
  const all = document.getElementById("unfold");
  if (all && folds.length) {
    const name = () => { all.textContent = folds.every((fold) => fold.open) ? "Close all" : "Open all"; };
    all.hidden = false;
    all.addEventListener("click", () => { const open = !folds.every((fold) => fold.open); for (const fold of folds) fold.open = open; });
    for (const fold of folds) fold.addEventListener("toggle", name);
  }

  /* --- passages: painted when seen, filtered by the controls and by the address ----------------------------------- */
  const start = (root) => {
    const source = root.querySelector("script.data");
    const passages = source ? new Passages(root, JSON.parse(source.textContent)) : null;  // outputs of systems have no colors to paint
    const controls = root.querySelector(".controls"), output = root.querySelector("output");
    const articles = [...root.querySelectorAll(".passage")];
    const field = (name) => [...root.querySelectorAll(`[data-control="${name}"]`)];
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) passages?.paint(entry.target);
    }, { rootMargin: "600px" });
    const has = (article, cut, label) => {
      const code = passages.data.cuts[cut].indexOf(label);
      return passages.runs(article.dataset.segment).some((run) => run.some((token) => token.codes.get(cut)?.includes(code)));
    };
    const update = () => {
      const value = (name) => field(name)[0]?.value ?? "";
      const words = value("text").toLowerCase();
      const selected = field("cut").find((select) => select.value);
      if (passages) passages.chosen = selected ? { cut: selected.dataset.cut, label: selected.value } : { cut: "", label: "" };
      let count = 0;
      for (const article of articles) {
        const text = article.querySelector(".text") ?? article, plain = text.dataset.plain ?? text.textContent;
        const fits = (!value("why") || article.dataset.why.split("|").includes(value("why")))
          && (!value("group") || article.dataset.group === value("group"))
          && (!words || plain.toLowerCase().includes(words))
          && (!passages?.chosen.cut || has(article, passages.chosen.cut, passages.chosen.label));
        article.hidden = !fits;
        count += fits;
        seen.unobserve(article);
        if (fits) seen.observe(article);
      }
      if (output) output.textContent = count === articles.length ? `${count} segments` : `${count} of ${articles.length} segments`;
      passages?.legend(root.querySelector(".legend"));
    };
    const clear = () => {
      for (const name of ["why", "group", "cut", "text"]) for (const control of field(name)) control.value = "";
    };
    const fromAddress = () => {
      const match = /^#cut=([^&]*)&is=(.*)$/.exec(location.hash);
      if (!match) {
        const article = articles.find((one) => `#${one.id}` === location.hash);
        if (article?.hidden) { clear(); update(); }
        if (article) { unfold(article); passages?.paint(article); article.scrollIntoView(); }
        return;
      }
      const [cut, label] = match.slice(1).map((part) => { try { return decodeURIComponent(part); } catch { return ""; } });
      const select = cut === "group" ? field("group")[0] : field("cut").find((one) => one.dataset.cut === cut);
      if (!select || ![...select.options].some((option) => option.value === label)) return;
      clear();
      select.value = label;
      update();
      unfold(root);
      root.scrollIntoView();
    };
    if (controls) {
      controls.hidden = false;
      for (const hint of root.querySelectorAll(".hint")) hint.hidden = false;
      controls.addEventListener("input", (event) => {
        const select = event.target.closest('[data-control="cut"]');
        if (select) for (const other of field("cut")) if (other !== select) other.value = "";
        const color = event.target.closest('[name="color"]');
        if (color) passages.color = color.value;
        update();
      });
      field("clear")[0].addEventListener("click", () => { clear(); update(); });
    }
    addEventListener("hashchange", fromAddress);
    addEventListener("beforeprint", () => articles.forEach((article) => article.hidden || passages?.paint(article)));
    update();
    fromAddress();
    return passages;
  };

  /* --- tables: a click on a head sorts ------------------------------------------------------------------------------ */
  const sortable = (table) => {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    if (body.rows.length < 3) return;
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = element("button", "", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => {
          const value = row.cells[column].dataset.value ?? "";
          if (value === "") return -Infinity;
          if (value === "inf") return Infinity;
          return Number.isNaN(Number(value)) ? value : Number(value);
        };
        const order = (x, y) => (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
        const rows = [...body.rows].sort((x, y) => (down ? -1 : 1) * order(key(x), key(y)));
        body.append(...rows);
      });
    });
  };

  /* --- tables: copied as what papers and programs take ---------------------------------------------------------------- */
  const shownOf = (cell) => {
    const drawn = cell.querySelector("svg");
    if (drawn) return drawn.getAttribute("aria-label");
    const plain = cell.cloneNode(true);
    for (const sign of plain.querySelectorAll("[aria-hidden]")) sign.remove();
    return plain.textContent.replace(/\s+/g, " ").trim();
  };
  const [MARKDOWN, LATEX] = ESCAPES_OF_TABLES; /* put in by page.py, from tsv_renderer.py */
  const escaped = (text, signs) => Array.from(text, (sign) => signs[sign] ?? sign).join("");
  const latex = (text) => escaped(text, LATEX).replace(/(?<!\S)-(?=[\d$])/g, "$$-$$");
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  /* Return a number in full precision, as far as it is shown in the unit of its value. */
  const exact = (cell) => (cell.matches("td.number") && /^(–|([<>≥] )?[-+]?[\d.,e-]+)$/.test(shownOf(cell)) ? cell.dataset.value : shownOf(cell));
  const COPIES = {
    Markdown: (rows, right) => {
      const line = (cells) => `| ${cells.join(" | ")} |`;
      const [heads, ...body] = rows.map((cells) => cells.map((cell) => escaped(shownOf(cell), MARKDOWN)));
      return [line(heads), line(right.map((is) => (is ? "--:" : ":--"))), ...body.map(line)].join("\n");
    },
    LaTeX: (rows, right) => {
      const [heads, ...body] = rows.map((cells) => `${cells.map((cell) => latex(shownOf(cell))).join(" & ")} \\\\`);
      return [`\\begin{tabular}{${right.map((is) => (is ? "r" : "l")).join("")}}`, "\\toprule", heads, "\\midrule", ...body, "\\bottomrule", "\\end{tabular}"].join("\n");
    },
    CSV: (rows) => rows.map((cells) => cells.map((cell) => quoted(exact(cell))).join(",")).join("\n"),
  };
  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch {
      const area = element("textarea", "unseen", text), before = document.activeElement;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      before?.focus();
      return done;
    }
  };
  const copyable = (table) => {
    const box = table.closest(".table");
    if (!box) return;
    const right = [...table.tHead.rows[0].cells].map((cell, i) => table.tBodies[0].rows[0].cells[i].classList.contains("right"));
    const group = element("div", "copy", "Copy as");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", `copy the table ${table.caption?.textContent ?? ""}`.trim());
    for (const [name, write] of Object.entries(COPIES)) {
      const button = element("button", "", name);
      button.type = "button";
      button.addEventListener("click", async () => {
        const done = await copied(`${write([...table.rows].map((row) => [...row.cells]), right)}\n`);
        button.textContent = done ? "copied" : "not copied";
        setTimeout(() => { button.textContent = name; }, 1500);
      });
      group.append(button);
    }
    box.append(group);
  };

  /* --- light and dark ------------------------------------------------------------------------------------------------ */
  const theme = document.getElementById("theme");
  if (theme) {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (document.body.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
    const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
    theme.hidden = false;
    name();
    dark.addEventListener("change", name);
    theme.addEventListener("click", () => { document.body.dataset.theme = isDark() ? "light" : "dark"; name(); });
  }

  for (const table of document.querySelectorAll(".lmgauge table")) { copyable(table); sortable(table); }
  window.lmgauge = { Passages, start, passages: [...document.querySelectorAll(".passages")].map(start) };
})();
