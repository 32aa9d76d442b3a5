// The inspector: requests /inspect and draws the result with the shared components.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);

  class Inspector {
    constructor(element, panes, onChange) {
      Object.assign(this, { element, panes, onChange });
      this.name = "a";
      this.target = make("input", {
        id: "target", type: "text", dir: "auto", spellcheck: "false", autocomplete: "off",
        on: {
          keydown: (event) => { if (event.key === "Enter" && !event.isComposing) this.run(); },
          change: () => onChange(),
        },
      });
      this.draw();
    }

    get pane() { return this.panes.find((one) => one.name === this.name); }

    draw() {
      this.box ??= make("div", { id: "inspection" });
      this.error ??= make("div", { data: { role: "error" } });
      const { task, name, capabilities } = this.pane.model;
      const isSupported = capabilities.includes("inspect");
      this.button = app.button("app.inspector.run", () => this.run(), { id: "inspect", disabled: !isSupported });
      const about = app.readsFiles(this.pane.model) ? `app.inspector.${app.fileKind(this.pane.model)}` : task === "transduce" ? "app.inspector.about" : "app.inspector.labels";
      const target = make("label", { class: "target" },
        make("span", {}, regard.say("app.inspector.target")), this.target);
      this.element.replaceChildren(
        make("div", { class: "head" },
          make("h2", { id: "inspector-title" }, regard.say("app.inspector")), this.compared ? this.paneSwitch() : null),
        make("p", { class: "muted" }, regard.say(isSupported ? about : "app.unsupported", { name })),
        make("div", { class: "toolbar" }, isSupported && task === "transduce" ? target : null, this.button),
        this.error, this.box);
    }

    // Selects which of two models is inspected.
    paneSwitch() {
      const names = this.panes.map((one, index) => [one.name, regard.say(`app.model.${index ? "two" : "one"}`)]);
      return regard.segments(regard.say("app.model"), "side", names, this.name, (name) => {
        this.name = name;
        this.draw();
        if (this.data) this.run();
      });
    }

    compare(on) {
      this.compared = on;
      if (!on) this.name = "a";
      this.draw();
    }

    // Removes the result of another model.
    clear() {
      this.abort?.abort();
      this.view?.destroy();
      this.view = this.data = null;
      this.box.replaceChildren();
      this.error.replaceChildren();
      this.element.classList.remove("stale");
      this.draw();
    }

    show(data) {
      this.view?.destroy();
      this.box.replaceChildren();
      this.data = data;
      this.view = regard.inspection(this.box, data);
    }

    // Returns the shown prediction if it was made under constraints, which /inspect does not have:
    // it is the target of forced decoding.
    constrainedOutput() {
      const { value, result } = this.pane;
      const isCurrent = result?.complete && result.text === this.text();
      return isCurrent && app.activeConstraints(value.constraints) ? result.prediction.text : "";
    }

    async run() {
      if (!this.text().trim() && this.pane.model.task !== "language-model") {
        app.announce(regard.say(app.readsFiles(this.pane.model) ? "app.file.empty" : "app.empty"));
        document.getElementById(app.readsFiles(this.pane.model) ? "file" : "text").focus();
        return;
      }
      this.abort?.abort();
      const abort = (this.abort = new AbortController());
      const { value, model } = this.pane;
      const target = model.task === "transduce" ? this.target.value || this.constrainedOutput() : "";
      this.error.replaceChildren();
      this.button.textContent = regard.say("app.inspector.working");
      this.box.setAttribute("aria-busy", "true");
      try {
        this.show(await app.api.json("inspect", {
          model: value.model, ...app.sourceFields(this.text(), model), search: value.search, ...(target ? { target } : {}),
        }, abort.signal));
      } catch (error) {
        if (error.name === "AbortError") return;
        app.showError(this.error, error, () => this.run());
      }
      this.box.removeAttribute("aria-busy");
      this.button.textContent = regard.say("app.inspector.run");
    }
  }
  app.Inspector = Inspector;
})();
