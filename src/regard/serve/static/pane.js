// One side of the bench: a model, the settings of its search, and its answer as it grows.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const NBEST = 5;

  const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

  // What is asked of an answer, without what is not; nothing where nothing is asked.
  app.wishOf = (wish) => {
    const asked = Object.entries(wish || {}).filter(([, value]) => value.length);
    return asked.length ? Object.fromEntries(asked) : undefined;
  };

  // How many answers are listed. A list that is longer than the beam would need a wider one, and
  // so another search than the one whose answer is shown.
  function listed(value, model) {
    if (model.task !== "transduce") return 1;
    const beam = value.search.beam ?? model.search.beam;
    const kind = value.search.kind ?? model.search.kind;
    return kind === "beam" && beam ? Math.min(value.nbest, beam) : value.nbest;
  }

  // The body of /predict that gives what a pane shows.
  app.predictBody = (text, value, model) => ({
    model: value.model,
    texts: [text],
    ...(listed(value, model) > 1 ? { nbest: listed(value, model) } : {}),
    ...(Object.keys(value.search).length ? { search: value.search } : {}),
    ...(app.wishOf(value.wish) ? { constraints: [app.wishOf(value.wish)] } : {}),
  });

  // options: {changed, answered, busy} are called with what happens; most: answers to a text.
  class Pane {
    constructor(name, models, options) {
      Object.assign(this, { name, models }, options);
      this.value = this.fresh(models[0].name);
      this.shown = null;
      this.abort = null;
      const choose = () => this.choose(this.select.value);
      this.select = make("select", { data: { role: "model" }, on: { change: choose } });
      this.about = make("p", { class: "about muted", data: { role: "about" } });
      this.form = make("details", { class: "settings", data: { role: "settings" } });
      this.facts = make("div", { class: "measures muted", data: { role: "facts" } });
      this.begin = make("div", { class: "begins" });
      this.error = make("div", { data: { role: "error" } });
      this.body = make("div", { class: "answer", data: { role: "answer" } });
      this.element = make("section", { class: "pane", data: { pane: name } },
        make("div", { class: "head" },
          make("label", { class: "pick" }, make("span", { data: { role: "title" } }), this.select), this.facts),
        this.about, this.form, this.begin, this.error, this.body);
      this.draw();
    }

    get model() { return this.models.find((one) => one.name === this.value.model); }

    fresh(model) { return { model, search: {}, nbest: NBEST, wish: { prefix: "", require: [], ban: [] } }; }

    choose(name) {
      this.set(this.fresh(name));
      this.changed(this);
    }

    set(value) {
      this.stop();
      this.value = { ...this.fresh(value.model), ...value };
      this.shown = null;
      this.begunFor = undefined;
      this.draw();
    }

    change(part) {
      Object.assign(this.value, part);
      this.summary();
      this.changed(this);
    }

    // Everything again: another model, another language.
    draw() {
      this.select.replaceChildren(...this.models.map((one) =>
        make("option", { value: one.name, selected: one.name === this.value.model }, one.name)));
      this.element.dataset.task = this.model.task;
      this.title(this.compared);
      const count = this.model.parameters;
      const format = new Intl.NumberFormat(regard.language);
      const size = count ? regard.say("app.parameters", { count: format.format(count) }) : "";
      this.about.textContent = [regard.described(this.model), size].filter(Boolean).join(" \u00b7 ");
      this.drawForm();
      this.drawBegin();
      this.drawAnswer();
    }

    title(compared) {
      this.compared = compared;
      const word = compared ? `app.model.${this.name === "a" ? "one" : "two"}` : "app.model";
      this.element.querySelector("[data-role=title]").textContent = regard.say(word);
      this.element.setAttribute("aria-label", `${regard.say(word)}: ${this.value.model}`);
    }

    drawForm() {
      const settings = app.settings(this.model, this.value.search, (search) => this.change({ search }));
      const reset = app.button("app.settings.reset", () => {
        this.change(this.fresh(this.value.model));
        this.drawForm();
        this.drawBegin();
        this.form.querySelector("summary").focus();
      }, { data: { role: "reset" } });
      this.count = make("em", {});
      if (this.model.task === "transduce") settings.element.append(...this.wishes());
      const none = make("p", { class: "muted" }, regard.say("app.settings.none"));
      this.form.replaceChildren(make("summary", {}, `${regard.say("app.settings")} `, this.count),
        ...(settings.element.childElementCount ? [settings.element, reset] : [none]));
      this.summary();
    }

    wishes() {
      const nbest = make("input", {
        type: "number", min: 1, max: this.most, step: 1, required: true, value: this.value.nbest,
        on: { change: () => { if (nbest.reportValidity()) this.change({ nbest: Number(nbest.value) }); } },
      });
      const prefix = make("input", {
        type: "text", dir: "auto", value: this.value.wish.prefix,
        on: { change: () => {
          this.begunFor = undefined;
          this.wish({ prefix: prefix.value });
          this.drawBegin();
        } },
      });
      const list = (name) => make("textarea", {
        rows: 1, dir: "auto",
        on: { change: (event) => this.wish({ [name]: lines(event.target.value) }) },
      }, this.value.wish[name].join("\n"));
      return [
        app.field("nbest", nbest, regard.say("app.nbest")),
        app.field("prefix", prefix, regard.say("app.prefix")),
        app.field("require", list("require"), regard.say("app.require")),
        app.field("ban", list("ban"), regard.say("app.ban")),
      ];
    }

    wish(part) { this.change({ wish: { ...this.value.wish, ...part } }); }

    summary() {
      const wish = Object.keys(app.wishOf(this.value.wish) || {}).length;
      const count = Object.keys(this.value.search).length + wish + (this.value.nbest !== NBEST ? 1 : 0);
      this.count.textContent = count ? regard.say("app.settings.changed", { count }) : "";
    }

    drawBegin() {
      const prefix = this.value.wish.prefix;
      this.begin.replaceChildren();
      if (!prefix) return;
      const drop = () => {
        this.wish({ prefix: "" });
        this.drawForm();
        this.drawBegin();
      };
      this.begin.append(make("span", { class: "begun", data: { role: "prefix" } },
        make("span", { class: "muted" }, `${regard.say("app.begins")} `), make("b", { dir: "auto" }, prefix),
        make("button", {
          type: "button", class: "ghost", "aria-label": regard.say("app.begins.drop"), on: { click: drop },
        }, "\u00d7")));
    }
  }
  app.Pane = Pane;
})();
