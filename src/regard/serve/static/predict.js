// Predictions of a pane: requests, streaming, the n-best list, alternatives.
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
      this.onBusy();
    },

    drawPrediction() {
      if (!this.result) {
        this.stats.replaceChildren();
        const text = regard.say(this.abort ? "app.working" : "app.waiting");
        this.body.replaceChildren(make("p", { class: "muted waiting" }, text));
        return;
      }
      const { prediction, text, model, complete } = this.result;
      const hasAlternatives = complete && !prediction.items && model.capabilities.includes("alternatives") && app.prefixes(prediction);
      app.drawPrediction(this.body, {
        model, text, prediction,
        other: this.other?.text === text ? this.other.prediction : null,
        onToken: hasAlternatives ? (position, button) => this.toggleAlternatives(position, button) : null,
      });
      this.stats.replaceChildren(...(complete ? app.predictionStats(prediction).filter(Boolean) : []));
    },

    // Marks differences from the result of the other pane.
    compareWith(other) {
      this.other = other;
      if (this.result?.complete) this.drawPrediction();
    },

    show(prediction, text, complete) {
      this.result = { prediction, text, model: this.model, complete };
      this.drawPrediction();
    },

    // Predicts a text; cancels a running request.
    async run(text) {
      this.stop();
      this.other = null;
      this.error.replaceChildren();
      const abort = (this.abort = new AbortController());
      this.body.setAttribute("aria-busy", "true");
      this.element.classList.add("busy");
      this.onBusy();
      if (!this.result) this.drawPrediction();
      let prediction = null;
      try {
        prediction = await this.fetchPrediction(text, abort.signal);
        this.show(prediction, text, true);
        this.restoreFocus();
        this.onResult(this);
        await this.fetchNBest(text, prediction, abort.signal);
      } catch (error) {
        if (abort.signal.aborted) return;
        if (!prediction) this.clear();
        if (error.status === 401) document.dispatchEvent(new CustomEvent("regard:key"));
        else app.showError(this.error, error, () => this.run(text));
      }
      this.stop();
    },

    // Stops, and shows a message instead of a prediction.
    reset(message) {
      this.stop();
      this.error.replaceChildren();
      this.clear();
      this.body.replaceChildren(make("p", { class: "muted waiting" }, message));
    },

    // Removes the result of an earlier request.
    clear() {
      this.result = null;
      this.stats.replaceChildren();
      this.body.replaceChildren();
    },

    async fetchPrediction(text, signal) {
      const body = app.predictRequest(text, this.value, this.model);
      const several = body.texts?.length > 1;
      if (several || !this.model.capabilities.includes("stream")) {
        const { predictions, latency_ms } = await app.api.json("predict", body, signal);
        if (!several) return { ...predictions[0], latency_ms };
        const items = predictions.map((prediction, index) => ({ text: body.texts[index], prediction }));
        return { text: predictions.map((one) => one.text).join("\n"), items, latency_ms };
      }
      const onPartial = (partial) => {
        if (!signal.aborted) this.show(partial, text, false);
      };
      return app.api.stream({
        model: body.model, ...app.sourceFields(app.questions(text, this.model)[0], this.model), search: body.search, constraints: body.constraints?.[0],
      }, onPartial, signal);
    },

    // Requests the n-best list, which a stream does not contain.
    async fetchNBest(text, prediction, signal) {
      const body = app.predictRequest(text, this.value, this.model);
      if (!body.nbest || prediction.items || (prediction.nbest || []).length > 1) return;
      const response = await app.api.json("predict", body, signal);
      if (signal.aborted || this.result?.prediction !== prediction) return;
      prediction.nbest = response.predictions[0].nbest;
      const focused = document.activeElement?.dataset?.position;
      if (!this.body.querySelector(".alternatives")) this.drawPrediction();
      if (focused !== undefined) this.body.querySelector(`[data-position="${focused}"]`)?.focus();
    },

    // Clears a prefix that was selected for another text.
    clearStalePrefix(text) {
      if (this.prefixText === undefined || this.prefixText === text) return;
      this.prefixText = undefined;
      this.value.constraints = { ...this.value.constraints, prefix: "" };
      this.drawForm();
      this.drawPrefix();
    },

    // Moves the focus to the selected token, unless it is elsewhere by now.
    restoreFocus() {
      if (this.selected !== undefined && document.activeElement === document.body) {
        this.body.querySelector(`[data-position="${this.selected}"]`)?.focus();
      }
      this.selected = undefined;
    },

    // Opens or closes the alternatives at a position.
    toggleAlternatives(position, button) {
      const box = this.body.querySelector("[data-role=alternatives]");
      const isOpen = button.getAttribute("aria-expanded") === "true";
      for (const one of this.body.querySelectorAll("[aria-expanded=true]")) {
        one.setAttribute("aria-expanded", "false");
      }
      this.alternativesAbort?.abort();
      const onClose = () => {
        this.alternativesAbort?.abort();
        button.setAttribute("aria-expanded", "false");
        box.replaceChildren();
        button.focus();
      };
      if (isOpen) return onClose();
      button.setAttribute("aria-expanded", "true");
      this.alternativesAbort = new AbortController();
      const { prediction, text, model } = this.result;
      const onSelect = (prefix) => {
        this.selected = position;
        this.prefixText = text;
        this.setConstraints({ prefix });
        this.drawForm();
        this.drawPrefix();
      };
      return app.showAlternatives(box, {
        model, text, prediction, position, prefix: app.prefixes(prediction)[position],
        search: this.value.search, constraints: app.activeConstraints(this.value.constraints),
      }, { onSelect, onClose, signal: this.alternativesAbort.signal });
    },
  });
})();
