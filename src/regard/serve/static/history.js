// What was asked before, kept in this browser only: at most 50 states, the newest first.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const KEY = "history";
  const MOST = 50;
  let entries = [];
  let kept = true;

  function sound(one) {
    return one && typeof one.fragment === "string" && app.stateOf(one.fragment)
      && Array.isArray(one.answers) && typeof one.at === "number";
  }

  function load() {
    try {
      const found = JSON.parse(regard.recall(KEY) || "[]");
      if (Array.isArray(found)) entries = found.filter(sound).slice(0, MOST);
    } catch { entries = []; }
  }

  // Long texts may fill what a browser gives a page: then the oldest go.
  function save() {
    for (let count = entries.length; count >= 0; count = Math.floor(count / 2)) {
      const text = JSON.stringify(entries.slice(0, count));
      regard.remember(KEY, text);
      kept = regard.recall(KEY) === text;
      if (kept || count === 0) return;
    }
  }

  // Notes an answer; the same question once more goes to the top.
  app.note = (state, answers) => {
    const fragment = app.fragment(state);
    const others = entries.filter((one) => one.fragment !== fragment);
    entries = [{ fragment, answers, at: Date.now() }, ...others].slice(0, MOST);
    save();
  };

  function row(entry, open) {
    const state = app.stateOf(entry.fragment);
    const names = state.compare ? state.panes.map((one) => one.model) : [state.panes[0].model];
    const form = new Intl.DateTimeFormat(regard.language, { dateStyle: "medium", timeStyle: "short" });
    return make("li", {}, make("button", { type: "button", class: "entry", on: { click: () => open(state) } },
      make("span", { class: "asked", dir: "auto" }, state.text || "\u00a0"),
      entry.answers.map((text) => make("span", { class: "said", dir: "auto" }, text)),
      make("small", { class: "muted" }, `${names.join(" / ")} \u00b7 ${form.format(entry.at)}`)));
  }

  // The list as a dialog; open gets the state of the entry that was chosen.
  app.history = (dialog, open) => {
    const close = () => dialog.close();
    const clear = () => {
      entries = [];
      save();
      draw();
      dialog.querySelector("#history-close").focus();
    };
    const draw = () => {
      const empty = !entries.length;
      dialog.replaceChildren(
        make("div", { class: "head" }, make("h2", { id: "history-title" }, regard.say("app.history")),
          empty ? null : app.button("app.history.clear", clear, { class: "ghost", id: "history-clear" }),
          app.button("app.close", close, { class: "ghost", id: "history-close", autofocus: true })),
        ...(kept ? [] : [make("p", { class: "note" }, regard.say("app.history.lost"))]),
        empty ? make("p", { class: "muted" }, regard.say("app.history.none"))
          : make("ol", {}, entries.map((entry) => row(entry, (state) => { close(); open(state); }))));
    };
    dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
    load();
    return { open() { draw(); dialog.showModal(); } };
  };
})();
