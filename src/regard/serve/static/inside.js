// What happens inside a model: fetched when asked for, drawn by the shared components.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);

  class Inside {
    constructor(element, panes, changed) {
      Object.assign(this, { element, panes, changed });
      this.name = "a";
      this.target = make("input", {
        id: "target", type: "text", dir: "auto", spellcheck: "false", autocomplete: "off",
        on: {
          keydown: (event) => { if (event.key === "Enter" && !event.isComposing) this.look(); },
          change: () => changed(),
        },
      });
      this.draw();
    }

    get pane() { return this.panes.find((one) => one.name === this.name); }

    draw() {
      this.box ??= make("div", { id: "inspection" });
      this.error ??= make("div", { data: { role: "error" } });
      const { task, name, capabilities } = this.pane.model;
      const can = capabilities.includes("inspect");
      this.button = app.button("app.inside.open", () => this.look(), { id: "inspect", disabled: !can });
      const about = task === "transduce" ? "app.inside.about" : "app.inside.labels";
      const forced = make("label", { class: "target" },
        make("span", {}, regard.say("app.inside.target")), this.target);
      this.element.replaceChildren(
        make("div", { class: "head" },
          make("h2", { id: "inside-title" }, regard.say("app.inside")), this.compared ? this.sides() : null),
        make("p", { class: "muted" }, regard.say(can ? about : "app.no", { name })),
        make("div", { class: "together" }, can && task === "transduce" ? forced : null, this.button),
        this.error, this.box);
    }

    // Which of two models is looked into.
    sides() {
      const names = this.panes.map((one, place) => [one.name, regard.say(`app.model.${place ? "two" : "one"}`)]);
      return regard.segments(regard.say("app.model"), "side", names, this.name, (name) => {
        this.name = name;
        this.draw();
        if (this.data) this.look();
      });
    }

    compare(on) {
      this.compared = on;
      if (!on) this.name = "a";
      this.draw();
    }

    // Another model was chosen: what was drawn is no longer true of it.
    clear() {
      this.abort?.abort();
      this.drawn?.destroy();
      this.drawn = this.data = null;
      this.box.replaceChildren();
      this.error.replaceChildren();
      this.element.classList.remove("stale");
      this.draw();
    }

    show(data) {
      this.drawn?.destroy();
      this.box.replaceChildren();
      this.data = data;
      this.drawn = regard.inspection(this.box, data);
    }

    // The answer that stands there, where the model was told how it begins or what is in it: left
    // to itself it would give another one.
    wished() {
      const { value, shown } = this.pane;
      const same = shown?.whole && shown.text === this.text();
      return same && app.wishOf(value.wish) ? shown.answer.text : "";
    }

    async look() {
      if (!this.text().trim() && this.pane.model.task !== "language-model") {
        app.announce(regard.say("app.empty"));
        document.getElementById("text").focus();
        return;
      }
      this.abort?.abort();
      const abort = (this.abort = new AbortController());
      const { value, model } = this.pane;
      const target = model.task === "transduce" ? this.target.value || this.wished() : "";
      this.error.replaceChildren();
      this.button.textContent = regard.say("app.inside.working");
      this.box.setAttribute("aria-busy", "true");
      try {
        this.show(await app.api.json("inspect", {
          model: value.model, text: this.text(), search: value.search, ...(target ? { target } : {}),
        }, abort.signal));
      } catch (problem) {
        if (problem.name === "AbortError") return;
        app.showError(this.error, problem, () => this.look());
      }
      this.box.removeAttribute("aria-busy");
      this.button.textContent = regard.say("app.inside.open");
    }
  }
  app.Inside = Inside;
})();
