// A pane: a model, its search settings and constraints, and its prediction.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const NBEST = 5;

  const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

  // Returns the texts to predict: one per line, or for language models the whole text.
  app.questions = (text, model) => {
    if (app.readsFiles(model)) return [text]; // the name of a file
    const found = model.task === "language-model" ? [text] : text.split("\n").filter((line) => line.trim());
    return found.length ? found : [text];
  };

  // Returns the constraints that are set; undefined if none is.
  app.activeConstraints = (constraints) => {
    const active = Object.entries(constraints || {}).filter(([, value]) => value.length);
    return active.length ? Object.fromEntries(active) : undefined;
  };

  // Returns the size of the n-best list. One longer than the beam would need a wider beam, and so
  // another search than that of the prediction.
  function nbestSize(value, model) {
    if (model.task !== "transduce") return 1;
    const beam = value.search.beam ?? model.search.beam;
    const kind = value.search.kind ?? model.search.kind;
    return kind === "beam" && beam ? Math.min(value.nbest, beam) : value.nbest;
  }

  // Returns the body of /predict for the settings of a pane.
  app.predictRequest = (text, value, model) => ({
    model: value.model,
    ...(app.readsFiles(model) ? { inputs: [app.fileFor(text, model)] } : { texts: app.questions(text, model) }),
    ...(nbestSize(value, model) > 1 ? { nbest: nbestSize(value, model) } : {}),
    ...(Object.keys(value.search).length ? { search: value.search } : {}),
    ...(app.activeConstraints(value.constraints)
      ? { constraints: app.questions(text, model).map(() => app.activeConstraints(value.constraints)) } : {}),
  });

  const MAX_SAMPLE = 60; // characters

  // Returns an example of the dev set with its expected output.
  function sampleText({ task, training, reads }) {
    const short = (text) => (text.length > MAX_SAMPLE ? `${text.slice(0, MAX_SAMPLE - 2)} …` : text);
    if (!training?.sample || task === "language-model" || reads?.media?.length) return "";
    const { source, target } = training.sample;
    return regard.say("app.intro.sample", { source: short(source), target: short(target) });
  }

  // Returns what a model does, what it was trained on, and its score on the dev set.
  function introduction(model) {
    const { task, training } = model;
    const does = regard.say(app.readsFiles(model) ? `app.intro.${app.fileKind(model)}.${task}` : `app.intro.${task}`);
    if (!training) return does;
    const format = new Intl.NumberFormat(regard.language);
    const { data, examples, dev_examples: held, metric, score, higher_is_better: isHigher } = training;
    const trained = data.length && examples
      ? regard.say("app.intro.trained", { data: data.join(", "), count: format.format(examples) }) : "";
    const key = metric === "exact_match" ? "app.intro.exact" : held > 1 ? "app.intro.score" : "app.intro.score.text";
    const better = regard.say(isHigher ? "app.intro.higher" : "app.intro.lower");
    const values = { metric: app.metricName(metric), score: regard.number(score, score < 10 ? 3 : 1), better };
    const good = regard.say(key, { ...values, count: format.format(held) });
    return [does, trained, good].filter(Boolean).join(" ");
  }

  // options: the callbacks {onChange, onResult, onBusy}, and maxNBest.
  class Pane {
    constructor(name, models, options) {
      Object.assign(this, { name, models }, options);
      this.value = this.defaults(models[0].name);
      this.result = null;
      this.abort = null;
      const selectModel = () => this.selectModel(this.select.value);
      this.select = make("select", { data: { role: "model" }, on: { change: selectModel } });
      this.intro = make("p", { class: "intro", data: { role: "intro" } });
      this.sample = make("p", { class: "about", dir: "auto", data: { role: "sample" } });
      this.about = make("p", { class: "about muted", data: { role: "about" } });
      this.form = make("details", { class: "settings", data: { role: "settings" } });
      this.stats = make("div", { class: "stats muted", data: { role: "stats" } });
      this.prefix = make("div", {});
      this.error = make("div", { data: { role: "error" } });
      this.body = make("div", { class: "prediction", data: { role: "prediction" } });
      this.element = make("section", { class: "pane", data: { pane: name } },
        make("div", { class: "head" },
          make("label", { class: "select" }, make("span", { data: { role: "title" } }), this.select), this.stats),
        this.intro, this.sample, this.about, this.form, this.prefix, this.error, this.body);
      this.draw();
    }

    get model() { return this.models.find((one) => one.name === this.value.model); }

    defaults(model) {
      return { model, search: {}, nbest: NBEST, constraints: { prefix: "", require: [], ban: [] } };
    }

    selectModel(name) {
      this.set(this.defaults(name));
      this.onChange(this);
    }

    set(value) {
      this.stop();
      this.value = { ...this.defaults(value.model), ...value };
      this.result = null;
      this.prefixText = undefined;
      this.draw();
    }

    update(part) {
      Object.assign(this.value, part);
      this.drawCount();
      this.onChange(this);
    }

    // Redraws everything, for another model or language.
    draw() {
      this.select.replaceChildren(...this.models.map((one) =>
        make("option", { value: one.name, selected: one.name === this.value.model }, one.name)));
      this.element.dataset.task = this.model.task;
      this.drawTitle(this.compared);
      this.intro.textContent = introduction(this.model);
      this.sample.textContent = sampleText(this.model);
      this.sample.hidden = !this.sample.textContent;
      const count = this.model.parameters;
      const format = new Intl.NumberFormat(regard.language);
      const size = count ? regard.say("app.parameters", { count: format.format(count) }) : "";
      this.about.textContent = [regard.described(this.model), size].filter(Boolean).join(" \u00b7 ");
      this.drawForm();
      this.drawPrefix();
      this.drawPrediction();
    }

    drawTitle(compared) {
      this.compared = compared;
      const key = compared ? `app.model.${this.name === "a" ? "one" : "two"}` : "app.model";
      this.element.querySelector("[data-role=title]").textContent = regard.say(key);
      this.element.setAttribute("aria-label", `${regard.say(key)}: ${this.value.model}`);
    }

    drawForm() {
      const settings = app.settings(this.model, this.value.search, (search) => this.update({ search }));
      const reset = app.button("app.settings.reset", () => {
        this.update(this.defaults(this.value.model));
        this.drawForm();
        this.drawPrefix();
        this.form.querySelector("summary").focus();
      }, { data: { role: "reset" } });
      this.count = make("em", {});
      if (this.model.task === "transduce") settings.element.append(...this.constraintFields());
      const none = make("p", { class: "muted" }, regard.say("app.settings.none"));
      this.form.replaceChildren(make("summary", {}, `${regard.say("app.settings")} `, this.count),
        ...(settings.element.childElementCount ? [settings.element, reset] : [none]));
      this.drawCount();
    }

    constraintFields() {
      const nbest = make("input", {
        type: "number", min: 1, max: this.maxNBest, step: 1, required: true, value: this.value.nbest,
        on: { change: () => { if (nbest.reportValidity()) this.update({ nbest: Number(nbest.value) }); } },
      });
      const prefix = make("input", {
        type: "text", dir: "auto", value: this.value.constraints.prefix,
        on: { change: () => {
          this.prefixText = undefined;
          this.setConstraints({ prefix: prefix.value });
          this.drawPrefix();
        } },
      });
      const words = (name) => make("textarea", {
        rows: 1, dir: "auto",
        on: { change: (event) => this.setConstraints({ [name]: lines(event.target.value) }) },
      }, this.value.constraints[name].join("\n"));
      return [
        app.field("nbest", nbest, regard.say("app.nbest")),
        app.field("prefix", prefix, regard.say("app.prefix")),
        app.field("require", words("require"), regard.say("app.require")),
        app.field("ban", words("ban"), regard.say("app.ban")),
      ];
    }

    setConstraints(part) { this.update({ constraints: { ...this.value.constraints, ...part } }); }

    drawCount() {
      const constraints = Object.keys(app.activeConstraints(this.value.constraints) || {}).length;
      const count = Object.keys(this.value.search).length + constraints + (this.value.nbest !== NBEST ? 1 : 0);
      this.count.textContent = count ? regard.say("app.settings.changed", { count }) : "";
    }

    drawPrefix() {
      const { prefix } = this.value.constraints;
      this.prefix.replaceChildren();
      if (!prefix) return;
      const clear = () => {
        this.setConstraints({ prefix: "" });
        this.drawForm();
        this.drawPrefix();
      };
      this.prefix.append(make("span", { class: "prefix", data: { role: "prefix" } },
        make("span", { class: "muted" }, `${regard.say("app.prefixed")} `), make("b", { dir: "auto" }, prefix),
        make("button", {
          type: "button", class: "ghost", "aria-label": regard.say("app.prefix.clear"), on: { click: clear },
        }, "\u00d7")));
    }
  }
  app.Pane = Pane;
})();
