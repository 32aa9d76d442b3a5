// The web UI of `regard serve`: connects input, panes, copy buttons, history and inspector.
//
// Hooks for tests. Ids: text, run (its data-busy is "true" while it runs), compare, examples,
// count, notice, key-form, api-key, panes, difference, copies, inspector, inspect, target,
// inspection, history-open, history, history-clear, history-close, switches, status. A pane is
// [data-pane=a|b] with [data-role=model|intro|sample|about|settings|reset|stats|error|prediction|
// text|tokens|alternatives|nbest|probabilities|unknown|truncated|score|latency|prefix]; a token is
// [data-position=N], an alternative button.option[data-token], a setting [data-setting=beam], a
// copy button [data-copy=text|link|curl|python|regard] and its text [data-role=code]; the retry
// button is [data-role=retry].
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const $ = (id) => document.getElementById(id);
  const page = { models: [], panes: [], compare: false, limits: {} };

  function state() {
    return {
      text: reads() && !app.hasFile($("text").value) ? "" : $("text").value,
      compare: page.compare,
      target: page.inspector.target.value,
      panes: page.panes.map((pane) => pane.value),
    };
  }

  function updateUrl() {
    history.replaceState(null, "", app.fragment({ ...state(), ...(reads() ? { text: "" } : {}) }));
  }

  const activePanes = () => (page.compare ? page.panes : page.panes.slice(0, 1));

  const reads = () => app.readsFiles(page.panes[0].model);

  function drawExamples() {
    page.files.show(page.panes[0].model);
    for (const id of ["text", "examples", "keys"]) $(id).hidden = reads();
    $("text-label").htmlFor = reads() ? "file" : "text";
    if (reads()) {
      $("text-label").textContent = regard.say("app.file");
      return;
    }
    const isPrompt = activePanes().every((pane) => pane.model.task === "language-model");
    $("text-label").textContent = regard.say(isPrompt ? "app.prompt" : "app.text");
    const texts = [...new Set(activePanes().flatMap((pane) => pane.model.examples))].slice(0, 3);
    const hints = [regard.say(isPrompt ? "app.placeholder.prompt" : "app.placeholder")];
    if (texts.length) hints.push(regard.say("app.placeholder.example", { text: texts[0] }));
    $("text").placeholder = hints.join("\n");
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
    const max = page.limits.max_chars;
    const count = [...$("text").value].length;
    const isNear = max && count > max * 0.8;
    const format = (value) => new Intl.NumberFormat(regard.language).format(value);
    $("count").textContent = isNear ? regard.say("app.count", { count: format(count), max: format(max) }) : "";
    $("count").classList.toggle("bad", Boolean(max) && count > max);
    $("keys").hidden = isNear || reads();
  }

  function drawDifference() {
    const [one, two] = page.panes.map((pane) => (pane.result?.complete ? pane.result : null));
    const hasBoth = page.compare && one && two && one.text === two.text;
    $("difference").hidden = !hasBoth;
    if (!hasBoth) return;
    page.panes[0].compareWith(two);
    page.panes[1].compareWith(one);
    $("difference").textContent = app.describeDifference(one.prediction, two.prediction);
  }

  function drawCopyButtons() {
    app.copyButtons($("copies"), () => app.copyFormats($("text").value, activePanes(), () => app.fragment(state())));
  }

  function setCompare(on) {
    page.compare = on;
    $("compare").setAttribute("aria-pressed", String(on));
    $("workspace").classList.toggle("compared", on);
    page.panes[1].element.hidden = !on;
    for (const pane of page.panes) {
      pane.drawTitle(on);
      if (!on) pane.compareWith(null);
    }
    if (!on) page.panes[1].stop();
    page.inspector.compare(on);
    drawExamples();
    drawDifference();
  }

  function onBusy() {
    const isBusy = activePanes().some((pane) => pane.abort);
    $("run").dataset.busy = String(isBusy);
    $("run").firstElementChild.textContent = regard.say(isBusy ? "app.stop" : "app.run");
  }

  // Shows a message instead of the predictions.
  function clear(message) {
    for (const pane of activePanes()) pane.reset(message);
    page.inspector.clear();
    drawDifference();
  }

  function run() {
    const text = $("text").value;
    if (!text.trim() && activePanes().some((pane) => pane.model.task !== "language-model")) {
      const message = regard.say(reads() ? "app.file.empty" : "app.empty");
      app.announce(message);
      clear(message);
      $(reads() ? "file" : "text").focus();
      return;
    }
    for (const pane of activePanes()) pane.clearStalePrefix(text);
    updateUrl();
    drawCopyButtons();
    drawDifference();
    for (const pane of activePanes()) pane.run(text);
  }

  function onResult() {
    const done = activePanes().filter(({ result }) => result?.complete && result.text === $("text").value);
    drawDifference();
    if (done.length < activePanes().length) return;
    const texts = done.map((pane) => pane.result.prediction.text);
    app.announce(texts.join("\n"));
    if (!reads()) app.addHistory(state(), texts);
    if (page.inspector.data) page.inspector.run();
  }

  function onChange(pane) {
    const { inspector } = page;
    if (pane.name === inspector.name && pane.value.model !== inspector.data?.model?.name) inspector.clear();
    if (pane === page.panes[0]) app.matchTasks(page.models, page.panes);
    drawExamples();
    drawDifference();
    updateUrl();
    if (reads() ? app.hasFile($("text").value) : $("text").value.trim()) run();
  }

  function restore(saved) {
    const names = page.models.map((model) => model.name);
    const missing = saved.panes.slice(0, saved.compare ? 2 : 1).map((one) => one.model)
      .filter((name) => name && !names.includes(name));
    $("notice").replaceChildren(...missing.map((name) =>
      make("p", { class: "notice bad" }, regard.say("app.unknown.model", { name }))));
    $("text").value = saved.text; // of a file: its name, if this page still has it
    page.inspector.target.value = saved.target;
    page.panes[1].models = page.models;
    page.panes.forEach((pane, index) => {
      const value = saved.panes[index];
      if (names.includes(value.model)) pane.set(value);
      else if (!value.model) pane.set({ ...value, model: names[index] || names[0], search: {} });
    });
    app.matchTasks(page.models, page.panes);
    page.inspector.clear();
    setCompare(saved.compare);
    drawCount();
    if (saved.text && !missing.length && (!reads() || app.hasFile(saved.text))) run();
  }

  function addListeners() {
    $("input-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if ($("run").dataset.busy !== "true") return run();
      for (const pane of activePanes()) pane.stop();
      return app.announce(regard.say("app.stopped"));
    });
    $("text").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      run();
    });
    $("text").addEventListener("input", () => {
      drawCount();
      if (!$("text").value) clear(regard.say("app.waiting"));
    });
    $("compare").addEventListener("click", () => {
      setCompare(!page.compare);
      if (page.compare && $("text").value.trim()) run();
      else updateUrl();
    });
    addEventListener("hashchange", () => {
      const saved = app.parseFragment(location.hash);
      if (saved) restore(saved);
    });
    document.addEventListener("regard:language", () => {
      for (const pane of page.panes) pane.draw();
      page.inspector.draw();
      drawExamples();
      drawCount();
      drawDifference();
      drawCopyButtons();
      onBusy();
    });
    const dialog = app.history($("history"), restore);
    $("history-open").addEventListener("click", () => dialog.open());
  }

  function build() {
    page.files = new app.FileInput($("files"), (name) => {
      $("text").value = name;
      run();
    });
    const options = { onChange, onResult, onBusy, maxNBest: page.limits.max_nbest };
    page.panes = ["a", "b"].map((name) => new app.Pane(name, page.models, options));
    if (page.models.length > 1) page.panes[1].set(page.panes[1].defaults(page.models[1].name));
    app.matchTasks(page.models, page.panes);
    $("panes").replaceChildren(...page.panes.map((pane) => pane.element));
    page.inspector = new app.Inspector($("inspector"), page.panes, updateUrl);
    page.inspector.text = () => app.questions($("text").value, page.panes[0].model)[0] ?? "";
    setCompare(false);
    drawCopyButtons();
    addListeners();
    $("loading").hidden = true;
    $("workspace").hidden = false;
    const saved = app.parseFragment(location.hash);
    if (saved) restore(saved);
    else $("text").focus({ preventScroll: true });
  }

  async function load() {
    $("notice").replaceChildren();
    try {
      page.models = (await app.api.json("models")).models;
      page.limits = await app.api.json("limits");
      const health = await app.api.json("health");
      $("foot").textContent = `regard ${health.version}`;
    } catch (error) {
      if (error.status === 401) return app.promptForKey(load);
      $("loading").hidden = true;
      return app.showError($("notice"), error, load);
    }
    return build();
  }

  document.addEventListener("regard:key", () => app.promptForKey(run));
  load();
})();
