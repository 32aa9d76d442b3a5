// The page of `regard serve`: joins text, panes, copies, history and the inside of the model.
//
// Hooks for tests. Ids: text, run (its data-busy is "true" while it answers), compare, examples,
// count, notice, key-form, key, panes, difference, copies, inside, inspect, target, inspection,
// history-open, history, history-clear, history-close, switches, status. A pane is
// [data-pane=a|b] with [data-role=model|about|settings|reset|facts|error|answer|text|tokens|
// alternatives|nbest|probabilities|unknown|cut|score|time|prefix]; a token is [data-place=N], a
// choice button.option[data-token], a setting [data-setting=beam], a copy [data-copy=answer|link|
// curl|python|regard] and what was copied [data-role=code]; trying again is [data-role=again].
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const $ = (id) => document.getElementById(id);
  const page = { models: [], panes: [], compare: false, limits: {} };

  function state() {
    return {
      text: $("text").value, compare: page.compare, target: page.inside.target.value,
      panes: page.panes.map((pane) => pane.value),
    };
  }

  function remember() {
    history.replaceState(null, "", app.fragment(state()));
  }

  const used = () => (page.compare ? page.panes : page.panes.slice(0, 1));

  function drawExamples() {
    const prompt = used().every((pane) => pane.model.task === "language-model");
    $("text-label").textContent = regard.say(prompt ? "app.prompt" : "app.text");
    const texts = [...new Set(used().map((pane) => pane.model.example).filter(Boolean))];
    $("examples").replaceChildren(...texts.map((text) => {
      const short = text.length > 44 ? `${text.slice(0, 42)} …` : text;
      const use = () => {
        $("text").value = text;
        run();
      };
      return make("button", { type: "button", class: "ghost", data: { example: text }, on: { click: use } },
        regard.say("app.try", { text: short }));
    }));
  }

  function drawCount() {
    const most = page.limits.max_chars;
    const count = [...$("text").value].length;
    const near = most && count > most * 0.8;
    const format = (value) => new Intl.NumberFormat(regard.language).format(value);
    const said = near ? regard.say("app.count", { count: format(count), most: format(most) }) : "";
    $("count").textContent = said;
    $("count").classList.toggle("bad", Boolean(most) && count > most);
    $("keys").hidden = near;
  }

  function drawDifference() {
    const [one, two] = page.panes.map((pane) => (pane.shown?.whole ? pane.shown : null));
    const both = page.compare && one && two && one.text === two.text;
    $("difference").hidden = !both;
    if (!both) return;
    page.panes[0].against(two);
    page.panes[1].against(one);
    $("difference").textContent = app.difference(one.answer, two.answer);
  }

  function drawCopies() {
    app.copies($("copies"), () => {
      const each = (write) => () => used()
        .map((pane) => write(app.predictBody($("text").value, pane.value, pane.model))).join("\n");
      const said = () => used().map((pane) => pane.shown?.answer.text ?? "").join("\n");
      const link = () => new URL(app.fragment(state()), location.href).href;
      return [
        ["answer", regard.say("app.answer"), said],
        ["link", regard.say("app.copy.link"), link],
        ["curl", "curl", each((body) => `${app.curl("predict", body)}\n`)],
        ["python", "Python", each((body) => app.urllib("predict", body))],
        ["regard", "regard", each(app.ownPython)],
      ];
    });
  }

  function setCompare(on) {
    page.compare = on;
    $("compare").setAttribute("aria-pressed", String(on));
    $("bench").classList.toggle("compared", on);
    page.panes[1].element.hidden = !on;
    for (const pane of page.panes) {
      pane.title(on);
      if (!on) pane.against(null);
    }
    if (!on) page.panes[1].stop();
    page.inside.compare(on);
    drawExamples();
    drawDifference();
  }

  function busy() {
    const on = used().some((pane) => pane.abort);
    $("run").dataset.busy = String(on);
    $("run").firstElementChild.textContent = regard.say(on ? "app.stop" : "app.answer");
  }

  function run() {
    const text = $("text").value;
    if (!text.trim() && used().some((pane) => pane.model.task !== "language-model")) {
      app.announce(regard.say("app.empty"));
      $("text").focus();
      return;
    }
    for (const pane of used()) pane.ready(text);
    remember();
    drawCopies();
    drawDifference();
    for (const pane of used()) pane.answer(text);
  }

  function answered() {
    const done = used().filter((pane) => pane.shown?.whole && pane.shown.text === $("text").value);
    drawDifference();
    if (done.length < used().length) return;
    const texts = done.map((pane) => pane.shown.answer.text);
    app.announce(texts.join("\n"));
    app.note(state(), texts);
    if (page.inside.data) page.inside.look();
  }

  function changed(pane) {
    const { inside } = page;
    if (pane.name === inside.name && pane.value.model !== inside.data?.model?.name) inside.clear();
    drawExamples();
    drawDifference();
    remember();
    if ($("text").value.trim()) run();
  }

  function apply(wanted) {
    const names = page.models.map((model) => model.name);
    const missing = wanted.panes.slice(0, wanted.compare ? 2 : 1).map((one) => one.model)
      .filter((name) => name && !names.includes(name));
    $("notice").replaceChildren(...missing.map((name) =>
      make("p", { class: "notice bad" }, regard.say("app.unnamed", { name }))));
    $("text").value = wanted.text;
    page.inside.target.value = wanted.target;
    page.panes.forEach((pane, place) => {
      const value = wanted.panes[place];
      if (names.includes(value.model)) pane.set(value);
      else if (!value.model) pane.set({ ...value, model: names[place] || names[0], search: {} });
    });
    page.inside.clear();
    setCompare(wanted.compare);
    drawCount();
    if (wanted.text && !missing.length) run();
  }

  function listen() {
    $("ask").addEventListener("submit", (event) => {
      event.preventDefault();
      if ($("run").dataset.busy !== "true") return run();
      for (const pane of used()) pane.stop();
      return app.announce(regard.say("app.stopped"));
    });
    $("text").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      run();
    });
    $("text").addEventListener("input", drawCount);
    $("compare").addEventListener("click", () => {
      setCompare(!page.compare);
      if (page.compare && $("text").value.trim()) run();
      else remember();
    });
    addEventListener("hashchange", () => {
      const wanted = app.stateOf(location.hash);
      if (wanted) apply(wanted);
    });
    document.addEventListener("regard:language", () => {
      for (const pane of page.panes) pane.draw();
      page.inside.draw();
      drawExamples();
      drawCount();
      drawDifference();
      drawCopies();
      busy();
    });
    const list = app.history($("history"), apply);
    $("history-open").addEventListener("click", () => list.open());
  }

  function build() {
    const options = { changed, answered, busy, most: page.limits.max_nbest };
    page.panes = ["a", "b"].map((name) => new app.Pane(name, page.models, options));
    if (page.models.length > 1) page.panes[1].set(page.panes[1].fresh(page.models[1].name));
    $("panes").replaceChildren(...page.panes.map((pane) => pane.element));
    page.inside = new app.Inside($("inside"), page.panes, remember);
    page.inside.text = () => $("text").value;
    setCompare(false);
    drawCopies();
    listen();
    $("loading").hidden = true;
    $("bench").hidden = false;
    const wanted = app.stateOf(location.hash);
    if (wanted) apply(wanted);
    else $("text").focus({ preventScroll: true });
  }

  async function load() {
    $("notice").replaceChildren();
    try {
      page.models = (await app.api.json("models")).models;
      page.limits = await app.api.json("limits");
      const health = await app.api.json("health");
      $("foot").textContent = `regard ${health.version}`;
    } catch (problem) {
      if (problem.status === 401) return askKey(load);
      $("loading").hidden = true;
      return app.showError($("notice"), problem, load);
    }
    return build();
  }

  // The key is asked for where the server refuses; what was refused is tried again.
  function askKey(again) {
    const form = $("key-form");
    $("loading").hidden = true;
    form.hidden = false;
    if (app.api.hasKey()) {
      app.api.setKey("");
      $("notice").replaceChildren(make("p", { class: "notice bad" }, regard.say("app.key.wrong")));
    }
    $("api-key").value = "";
    $("api-key").focus();
    form.onsubmit = (event) => {
      event.preventDefault();
      app.api.setKey($("api-key").value.trim());
      form.hidden = true;
      $("notice").replaceChildren();
      again();
    };
  }

  document.addEventListener("regard:key", () => askKey(run));
  load();
})();
