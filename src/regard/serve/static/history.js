// The history: up to 50 states with their predictions, newest first, stored in this browser only.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const KEY = "history";
  const MAX_ENTRIES = 50;
  let entries = [];
  let stored = true;

  function isValid(entry) {
    return entry && typeof entry.fragment === "string" && app.parseFragment(entry.fragment)
      && Array.isArray(entry.predictions) && typeof entry.time === "number";
  }

  function load() {
    try {
      const values = JSON.parse(regard.recall(KEY) || "[]");
      if (Array.isArray(values)) entries = values.filter(isValid).slice(0, MAX_ENTRIES);
    } catch { entries = []; }
  }

  // Long texts may exceed the storage quota: then the oldest entries are dropped.
  function save() {
    for (let count = entries.length; count >= 0; count = Math.floor(count / 2)) {
      const text = JSON.stringify(entries.slice(0, count));
      regard.remember(KEY, text);
      stored = regard.recall(KEY) === text;
      if (stored || count === 0) return;
    }
  }

  // Adds an entry; one with the same state is replaced.
  app.addHistory = (state, predictions) => {
    const fragment = app.fragment(state);
    const others = entries.filter((entry) => entry.fragment !== fragment);
    entries = [{ fragment, predictions, time: Date.now() }, ...others].slice(0, MAX_ENTRIES);
    save();
  };

  function row(entry, onSelect) {
    const state = app.parseFragment(entry.fragment);
    const names = state.compare ? state.panes.map((one) => one.model) : [state.panes[0].model];
    const format = new Intl.DateTimeFormat(regard.language, { dateStyle: "medium", timeStyle: "short" });
    return make("li", {}, make("button", { type: "button", class: "entry", on: { click: () => onSelect(state) } },
      make("span", { class: "input", dir: "auto" }, state.text || "\u00a0"),
      entry.predictions.map((text) => make("span", { class: "output", dir: "auto" }, text)),
      make("small", { class: "muted" }, `${names.join(" / ")} \u00b7 ${format.format(entry.time)}`)));
  }

  // The history as a dialog; onSelect gets the state of the selected entry.
  app.history = (dialog, onSelect) => {
    const close = () => dialog.close();
    const clear = () => {
      entries = [];
      save();
      draw();
      dialog.querySelector("#history-close").focus();
    };
    const draw = () => {
      const isEmpty = !entries.length;
      dialog.replaceChildren(
        make("div", { class: "head" }, make("h2", { id: "history-title" }, regard.say("app.history")),
          isEmpty ? null : app.button("app.history.clear", clear, { class: "ghost", id: "history-clear" }),
          app.button("app.close", close, { class: "ghost", id: "history-close", autofocus: true })),
        ...(stored ? [] : [make("p", { class: "note" }, regard.say("app.history.lost"))]),
        isEmpty ? make("p", { class: "muted" }, regard.say("app.history.none"))
          : make("ol", {}, entries.map((entry) => row(entry, (state) => { close(); onSelect(state); }))));
    };
    dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
    load();
    return { open() { draw(); dialog.showModal(); } };
  };
})();
