"use strict";
/* The explorer: asks this machine for what the page shows, and paints it with the report page's own painter. */
(() => {
  const token = new URLSearchParams(location.search).get("token") ?? "";
  if (token) history.replaceState(null, "", location.pathname + location.hash);
  const byId = (id) => document.getElementById(id);
  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // The cookie that the page came with is what a link to the report goes with.
  const headers = token ? { "x-lmgauge-token": token } : {};
  const answer = async (response) => {
    const content = await response.json().catch((error) => {
      if (error.name === "AbortError") throw error; // asked for something else meanwhile
      return { error: "the answer cannot be read" };
    });
    if (!response.ok || content.error) throw new Error(content.error);
    return content;
  };
  const unreachable = (error) => {
    if (error instanceof TypeError) throw new Error("the explorer does not answer, because it was stopped; start `lmgauge explore` again");
    throw error;
  };
  const ask = (path, asked = {}, signal = undefined) => fetch(`/api/${path}`, {
    method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(asked), signal,
  }).then(answer).catch(unreachable);

  const number = (value, digits = 3) => {
    if (value === null || value === undefined) return "–";
    if (value === "inf" || value === "-inf") return value === "inf" ? "∞" : "-∞";
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  const whole = (value) => number(value, 0);
  const between = (ends, digits = 3) => (ends ? `${number(ends[0], digits)} – ${number(ends[1], digits)}` : "–");
  const complain = (text) => { const box = byId("problem"); box.textContent = text; box.hidden = !text; };
  const wait = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const isAbort = (error) => error.name === "AbortError";

  const table = (titles, rows, caption = "") => {
    const made = element("table"), head = made.createTHead().insertRow(), body = made.createTBody();
    if (caption) made.createCaption().textContent = caption;
    titles.forEach((title, i) => {
      const cell = element(title ? "th" : "td", i ? "right" : "left", title);
      if (title) cell.scope = "col";
      head.append(cell);
    });
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((value, i) => {
        const cell = element(i ? "td" : "th", i ? "number" : "left text", value);
        if (!i) cell.scope = "row";
        line.append(cell);
      });
    }
    const scroll = element("div", "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "group");
    scroll.setAttribute("aria-label", caption || "table");
    scroll.append(made);
    return scroll;
  };

  /* --- the runs ------------------------------------------------------------------------------------------------------- */
  let state = null;
  const COLUMNS = {
    segment: "place in the text", bytes: "bytes", bits: "bits", bits_per_byte: "bits per byte", bits_per_event: "bits per event",
    events: "events", unseen: "unseen words", zeros: "impossible events", difference: "difference, bits",
    difference_per_byte: "difference, bits per byte",
  };
  const columnName = (name) => {
    if (COLUMNS[name]) return COLUMNS[name] + (state.runs.length > 1 && !/^(segment|bytes|difference)/.test(name) ? `, ${state.runs[0].name}` : "");
    return `${COLUMNS[name.slice(0, -2)]}, ${state.runs[1].name}`;
  };
  const perByte = (bits, { bits_per_byte_is_bound: bound }) => (bound && Number.isFinite(bits) ? "≥ " : "") + number(bits, 4);
  const showRuns = () => {
    const section = byId("runs");
    section.hidden = byId("report").hidden = !state.runs.length;
    const rows = state.runs.map(({ name, figures }) => [
      name, number(figures.perplexity, 2), between(figures.interval && [figures.interval.low, figures.interval.high], 2),
      perByte(figures.bits_per_byte, figures), whole(figures.events), whole(figures.oov) + (figures.oov && figures.oov_policy === "spelled" ? ", spelled" : ""),
      whole(figures.zero_probability_events), whole(figures.segments), whole(figures.bytes),
    ]);
    const titles = ["", "perplexity", "95 %", "bits per byte", "events", "unseen words", "impossible", "segments", "bytes"];
    const parts = [table(titles, rows, "The whole text")];
    for (const { figures } of state.runs.slice(0, 1)) if (figures.independence) parts.push(element("p", "note", figures.independence));
    for (const { signature } of state.runs) {
      if (!signature) continue;
      const line = element("p", "signature");
      line.append(element("code", "", signature));
      parts.push(line);
    }
    section.replaceChildren(...parts);
  };

  /* --- passages: articles as the report page has them, painted by its painter -------------------------------------- */
  let scale = null;
  const readable = (text, label) => {
    text.dir = "auto";
    text.tabIndex = 0;
    text.setAttribute("role", "group");
    text.setAttribute("aria-label", label);
  };
  const painted = (items, names) => ({ step: 0.05, fine: 0.001, names, cuts: {}, passages: Object.fromEntries(items.map((item) => [String(item.segment), item.runs])) });
  const article = (item, names) => {
    const made = element("article", "passage");
    made.id = `s${item.segment + 1}`;
    made.dataset.segment = String(item.segment);
    const about = element("p", "about"), anchor = element("a", "anchor", `#${item.segment + 1}`);
    anchor.href = `#s${item.segment + 1}`;
    anchor.setAttribute("aria-label", `link to segment ${item.segment + 1}`);
    const where = element("span", "where", item.where.replace(/^.*\/(?=[^/]*:\d+$)/, ""));
    where.title = item.where;
    about.append(anchor, " ", where);
    if (item.group) about.append(" ", element("span", "group", item.group));
    const figures = element("span", "figures");
    item.bits.forEach((bits, i) => {
      const per = item.size && bits !== "inf" ? ` · ${number(bits / item.size)} per byte` : "";
      figures.append(element("span", "", `${names.length > 1 ? `${names[i]} ` : ""}${number(bits, 1)} bits${per}`));
    });
    about.append(" ", figures);
    const text = element("p", "text", item.text);
    readable(text, `text of segment ${item.segment + 1}`);
    made.append(about);
    if (item.lead) {
      const lead = element("p", "lead", item.lead);
      lead.dir = "auto";
      lead.setAttribute("aria-label", `given before segment ${item.segment + 1}, not scored`);
      made.append(lead);
    }
    made.append(text);
    if (item.is_cut) made.append(parts(made, item, names));
    return made;
  };
  /* A long segment is shown in parts. */
  const parts = (made, item, names) => {
    const note = element("p", "note more", `bytes ${whole(item.begin)} to ${whole(item.begin + item.shown)} of ${whole(item.size)} `);
    const go = (label, begin) => {
      const button = element("button", "", label);
      button.type = "button";
      button.addEventListener("click", async () => {
        try {
          const next = await ask("segment", { at: item.segment, begin });
          const replaced = article(next, names);
          made.replaceWith(replaced);
          painter([next], names, byId("passages")).paint(replaced);
          replaced.querySelector("button")?.focus();
        } catch (error) { complain(error.message); }
      });
      note.append(button, " ");
    };
    if (item.begin) go("Part before", Math.max(0, item.begin - 6000));
    if (item.begin + item.shown < item.size - 1) go("Part after", item.begin + item.shown);
    return note;
  };
  const painter = (items, names, root) => {
    const made = new window.lmgauge.Passages(root, painted(items, names));
    if (scale && items.length) [made.width, made.apart, made.far] = scale; // one scale for all pages
    else if (items.length) scale = [made.width, made.apart, made.far];
    if (color !== null) made.color = color;
    return made;
  };

  /* --- segments: chosen, sorted, page by page ------------------------------------------------------------------------ */
  const form = byId("form"), section = byId("segments"), root = byId("passages"), list = root.querySelector(".list");
  let page = 0, pages = 1, request = null, shown = null, color = null, here = null;
  const query = () => {
    const field = form.elements, parameters = {};
    for (const name of ["q", "group", "sort"]) if (field[name].value) parameters[name] = field[name].value;
    for (const name of ["regex", "case", "falling"]) if (field[name].checked) parameters[name] = true;
    for (const bound of ["min", "max"]) if (field[bound].value) Object.assign(parameters, { column: field.column.value, [bound]: Number(field[bound].value) });
    return parameters;
  };
  const chosen = () => Object.fromEntries(Object.entries(query()).filter(([name]) => name !== "sort" && name !== "falling"));
  const paint = () => {
    if (!shown) return;
    if (color !== null) shown.color = color;
    for (const made of list.children) shown.paint(made);
    const legend = root.querySelector(".legend");
    shown.legend(legend);
    legend.hidden = !list.children.length;
    root.querySelector(".hint").hidden = !list.children.length;
  };
  const load = async (more = {}) => {
    request?.abort();
    const own = request = new AbortController();
    let is_first = true;
    for (;;) {
      let result;
      try {
        result = await ask("segments", { ...query(), ...(is_first ? { page, ...more } : { page }) }, own.signal);
      } catch (error) {
        if (!isAbort(error)) complain(error.message);
        return;
      }
      if (is_first) complain("");
      ({ page, pages } = result);
      showPage(result, is_first || result.items.length !== list.children.length);
      if (is_first) showNumbers(own.signal);
      is_first = false;
      if (result.is_complete || own.signal.aborted) return;
      await wait(400);
      if (own.signal.aborted) return;
    }
  };
  const showPage = (result, is_new) => {
    const names = state.runs.map((run) => run.name);
    if (is_new) {
      list.replaceChildren(...result.items.map((item) => article(item, names)));
      shown = painter(result.items, names, root);
      paint();
    }
    const all = Object.keys(chosen()).length === 0;
    const until = result.is_complete ? "" : `, in ${whole(result.seen)} looked at so far (${Math.floor(100 * result.share)} % of the text read)`;
    byId("found").textContent = `${whole(result.total)} segments${all ? "" : " found"}${until}`;
    byId("page").value = String(page + 1);
    byId("pages").textContent = `of ${whole(pages)}`;
    for (const button of root.querySelectorAll("[data-go]"))
      button.disabled = /first|back/.test(button.dataset.go) ? page === 0 : page + 1 >= pages;
    if (here !== null && byId(here)) {
      byId(here).classList.add("here");
      byId(here).scrollIntoView({ block: "center" });
      byId(here).querySelector(".text").focus({ preventScroll: true });
      here = null;
    }
  };
  const showNumbers = async (signal) => {
    const target = byId("numbers");
    if (!Object.keys(chosen()).length) return void (target.hidden = true);
    try {
      for (;;) {
        const numbers = await ask("numbers", chosen(), signal);
        if (numbers.runs) {
          const rows = numbers.runs.map((run, i) => [
            state.runs[i].name, whole(numbers.segments), whole(numbers.bytes), whole(run.events), number(run.bits, 1),
            perByte(run.bits_per_byte, state.runs[i].figures), between(run.bits_per_byte_interval, 4), number(run.perplexity, 2), between(run.perplexity_interval, 2),
          ]);
          const titles = ["", "segments", "bytes", "events", "bits", "bits per byte", "95 %", "perplexity", "95 %"];
          const made = [table(titles, rows, "All segments found")];
          const { difference, unit } = numbers;
          if (difference) made.push(element("p", "", `${state.runs[1].name} − ${state.runs[0].name}: ${number(difference.value, 4)} bits per byte (95 %: ${between(difference.interval, 4)}${difference.p === null ? "" : `, p = ${number(difference.p, 4)}`})`));
          if (unit) made.push(element("p", "note", unit.of === "unknown"
            ? "Two intervals were computed (independent lines; similar neighbors); the wider is shown."
            : `Intervals take ${whole(unit.count)} ${unit.of} as independent.`));
          target.replaceChildren(...made);
          target.hidden = false;
        }
        if (numbers.complete) return;
        await wait(700);
        if (signal.aborted) return;
      }
    } catch (error) { if (!isAbort(error)) complain(error.message); }
  };
  const go = (to) => { page = Math.max(0, Math.min(pages - 1, to)); load(); };
  const jump = (segment) => { here = `s${segment + 1}`; load({ at: segment }); };
  const fromAddress = () => {
    const match = /^#s(\d{1,15})$/.exec(location.hash);
    if (!match) return false;
    const there = byId(`s${match[1]}`);
    if (there) there.scrollIntoView({ block: "center" });
    else jump(Math.max(0, Number(match[1]) - 1));
    return !there;
  };
  const setUpSegments = () => {
    const field = form.elements;
    section.hidden = false;
    for (const part of form.querySelectorAll('[data-needs="text"]')) part.hidden = !state.has_text;
    const option = (select, value, text) => { const made = element("option", "", text); made.value = value; select.append(made); };
    for (const name of state.columns) {
      option(field.sort, name, columnName(name));
      if (name !== "segment") option(field.column, name, columnName(name));
    }
    showGroups();
    const names = state.runs.map((run) => run.name);
    const choices = names.length > 1 ? [["difference", `${names[1]} − ${names[0]}`]] : [];
    choices.push(...names.map((name, i) => [`${i}`, name]));
    for (const [i, run] of state.runs.entries()) if (run.has_kl) choices.push([`kl${i}`, `${run.name}: KL from its base`]);
    if (choices.length > 1) {
      const box = byId("colors"), fields = element("fieldset");
      fields.append(element("legend", "", "Color by"));
      for (const [value, text] of choices) {
        const label = element("label"), radio = element("input");
        Object.assign(radio, { type: "radio", name: "color", value, checked: value === choices[0][0] });
        radio.addEventListener("change", () => { color = value; paint(); });
        label.append(radio, element("span", "", text));
        fields.append(label);
      }
      box.replaceChildren(fields);
      box.hidden = false;
    }
    form.addEventListener("submit", (event) => { event.preventDefault(); page = 0; load(); });
    form.addEventListener("change", (event) => {
      if (event.target.name === "sort" && event.target.value !== "segment") field.falling.checked = true;
      if (event.target.name !== "column" || field.min.value || field.max.value) { page = 0; load(); }
    });
    byId("clear").addEventListener("click", () => { form.reset(); page = 0; load(); });
    root.addEventListener("click", (event) => {
      const to = event.target.closest("[data-go]")?.dataset.go;
      if (to) go({ first: 0, back: page - 1, on: page + 1, last: pages - 1 }[to]);
    });
    byId("page").addEventListener("change", (event) => { const to = parseInt(event.target.value.replaceAll(",", ""), 10); if (to > 0) go(to - 1); });
    byId("jump").addEventListener("submit", async (event) => {
      event.preventDefault();
      const wanted = event.target.elements.segment.value.trim().replace(/^#/, "");
      if (!wanted) return;
      try {
        complain("");
        form.reset();
        jump(/^[\d,]+$/.test(wanted) && !state.has_ids ? Math.max(0, Number(wanted.replaceAll(",", "")) - 1) : (await ask("segment", { id: wanted })).segment);
      } catch (error) { complain(error.message); }
    });
    addEventListener("hashchange", fromAddress);
    if (!fromAddress()) load();
  };
  const showGroups = () => {
    const select = form.elements.group;
    if (state.groups.length + 1 === select.options.length) return;
    for (const name of state.groups.slice(select.options.length - 1)) { const made = element("option", "", name); made.value = name; select.append(made); }
    select.closest("label").hidden = !state.groups.length;
  };

  /* --- what is typed --------------------------------------------------------------------------------------------------- */
  const setUpTyping = () => {
    const box = byId("typing"), status = byId("typed-state"), area = byId("typed-passages"), names = [state.typed];
    byId("typed").hidden = false;
    byId("typed-title").textContent = `Type a text: ${state.typed} scores it`;
    let timer = 0, current = null;
    const score = async () => {
      current?.abort();
      current = new AbortController();
      try {
        const result = box.value ? await ask("score", { text: box.value }, current.signal) : { items: [] };
        status.textContent = box.value && `${number(result.bits, 1)} bits in ${whole(result.events)} events, ${perByte(result.bits_per_byte, result)} bits per byte, perplexity ${number(result.perplexity, 2)}`;
        const made = new window.lmgauge.Passages(area, painted(result.items, names));
        const articles = result.items.map((item) => {
          const piece = element("article", "passage"), line = element("p", "text", item.text);
          piece.dataset.segment = String(item.segment);
          readable(line, `line ${item.segment + 1}, scored`);
          piece.append(line);
          return piece;
        });
        area.querySelector(".list").replaceChildren(...articles);
        for (const one of articles) made.paint(one);
        made.legend(area.querySelector(".legend"));
        area.querySelector(".legend").hidden = !articles.length;
      } catch (error) { if (!isAbort(error)) status.textContent = error.message; }
    };
    box.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(score, 250); });
  };

  /* --- begin ----------------------------------------------------------------------------------------------------------- */
  const watch = async () => {
    while (state.runs.length && !state.is_complete && !state.problem) {
      await wait(1000);
      state = await ask("state");
      showGroups();
    }
    if (state.problem) complain(state.problem);
  };
  const begin = async () => {
    try {
      state = await ask("state");
      showRuns();
      if (state.typed) setUpTyping();
      if (state.runs.length) setUpSegments();
      await watch();
    } catch (error) { complain(error.message); }
  };
  begin();
})();
