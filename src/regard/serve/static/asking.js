// How a pane asks: the request, the growing answer, the list of the best, what else could stand there.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);

  Object.assign(app.Pane.prototype, {
    stop() {
      this.abort?.abort();
      this.abort = null;
      this.body.removeAttribute("aria-busy");
      this.element.classList.remove("busy");
      this.busy();
    },

    drawAnswer() {
      if (!this.shown) {
        this.facts.replaceChildren();
        const said = regard.say(this.abort ? "app.working" : "app.waiting");
        this.body.replaceChildren(make("p", { class: "muted waiting" }, said));
        return;
      }
      const { answer, text, model, whole } = this.shown;
      const can = whole && model.capabilities.includes("alternatives") && app.beginnings(answer);
      const other = this.rival?.text === text ? this.rival.answer : null;
      app.answer(this.body, {
        model, text, answer, other: other?.text, otherAnswer: other,
        pick: can ? (place, button) => this.pick(place, button) : null,
      });
      this.facts.replaceChildren(...(whole ? app.facts(answer).filter(Boolean) : []));
    },

    // What the other pane said to the same text, so that differences can be marked.
    against(rival) {
      this.rival = rival;
      if (this.shown?.whole) this.drawAnswer();
    },

    show(answer, text, whole) {
      this.shown = { answer, text, model: this.model, whole };
      this.drawAnswer();
    },

    // Answers a text; what was asked before is given up.
    async answer(text) {
      this.stop();
      this.rival = null;
      this.error.replaceChildren();
      const abort = (this.abort = new AbortController());
      this.body.setAttribute("aria-busy", "true");
      this.element.classList.add("busy");
      this.busy();
      if (!this.shown) this.drawAnswer();
      let answer = null;
      try {
        answer = await this.ask(text, abort.signal);
        this.show(answer, text, true);
        this.focusAgain();
        this.answered(this);
        await this.list(text, answer, abort.signal);
      } catch (problem) {
        if (abort.signal.aborted) return;
        if (!answer) this.empty();
        if (problem.status === 401) document.dispatchEvent(new CustomEvent("regard:key"));
        else app.showError(this.error, problem, () => this.answer(text));
      }
      this.stop();
    },

    // Nothing is shown: what stood there was an answer to something else.
    empty() {
      this.shown = null;
      this.facts.replaceChildren();
      this.body.replaceChildren();
    },

    async ask(text, signal) {
      const body = app.predictBody(text, this.value, this.model);
      if (!this.model.capabilities.includes("stream")) {
        const found = await app.api.json("predict", body, signal);
        return { ...found.predictions[0], latency_ms: found.latency_ms };
      }
      const grow = (part) => {
        if (!signal.aborted) this.show(part, text, false);
      };
      return app.api.stream({
        model: body.model, text, search: body.search, constraints: body.constraints?.[0],
      }, grow, signal);
    },

    // The n best, which a stream does not give.
    async list(text, answer, signal) {
      const body = app.predictBody(text, this.value, this.model);
      if (!body.nbest || (answer.nbest || []).length > 1) return;
      const found = await app.api.json("predict", body, signal);
      if (signal.aborted || this.shown?.answer !== answer) return;
      answer.nbest = found.predictions[0].nbest;
      const focused = document.activeElement?.dataset?.place;
      if (!this.body.querySelector(".choices")) this.drawAnswer();
      if (focused !== undefined) this.body.querySelector(`[data-place="${focused}"]`)?.focus();
    },

    // A beginning that was chosen in an answer is of that answer: another text begins freely.
    ready(text) {
      if (this.begunFor === undefined || this.begunFor === text) return;
      this.begunFor = undefined;
      this.value.wish = { ...this.value.wish, prefix: "" };
      this.drawForm();
      this.drawBegin();
    },

    // After a choice the keyboard is at its token, unless it went elsewhere meanwhile.
    focusAgain() {
      if (this.chosen !== undefined && document.activeElement === document.body) {
        this.body.querySelector(`[data-place="${this.chosen}"]`)?.focus();
      }
      this.chosen = undefined;
    },

    // What else could stand at a place; the button is pressed while the list is open.
    pick(place, button) {
      const box = this.body.querySelector("[data-role=alternatives]");
      const open = button.getAttribute("aria-expanded") === "true";
      for (const one of this.body.querySelectorAll("[aria-expanded=true]")) {
        one.setAttribute("aria-expanded", "false");
      }
      this.looking?.abort();
      const close = () => {
        this.looking?.abort();
        button.setAttribute("aria-expanded", "false");
        box.replaceChildren();
        button.focus();
      };
      if (open) return close();
      button.setAttribute("aria-expanded", "true");
      this.looking = new AbortController();
      const { answer, text, model } = this.shown;
      const choose = (prefix) => {
        this.chosen = place;
        this.begunFor = text;
        this.wish({ prefix });
        this.drawForm();
        this.drawBegin();
      };
      return app.alternatives(box, {
        model, text, answer, place, prefix: app.beginnings(answer)[place],
        search: this.value.search, constraints: app.wishOf(this.value.wish),
      }, { choose, close, signal: this.looking.signal });
    },
  });
})();
