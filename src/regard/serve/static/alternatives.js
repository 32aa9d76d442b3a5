// Alternatives at a position of a prediction; selecting one continues decoding from it.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const TOP = 6;

  function row({ token, probability, prediction }, query, onSelect) {
    const prefix = app.prefixes(prediction)?.[query.position + 1];
    const isCurrent = prediction.tokens?.[query.position] === query.prediction.tokens?.[query.position];
    const text = isCurrent ? [prediction.text] : app.markDifferences(prediction.text, query.prediction.text);
    const name = regard.token(token === "<eos>" ? "</s>" : token);
    name.title ||= token; // a long token is truncated by CSS
    const cells = [
      name, app.meter(probability),
      make("span", { class: "number" }, regard.percent(probability)),
      make("span", { class: "output", dir: "auto" }, text),
    ];
    if (prefix === undefined || isCurrent) {
      const current = isCurrent ? { class: "current", "aria-current": "true" } : {};
      return make("li", current, make("span", { class: "option" }, cells));
    }
    const values = { token: regard.plain(token), p: regard.percent(probability), text: prediction.text };
    return make("li", {}, make("button", {
      type: "button", class: "option", "aria-label": regard.say("app.alternative", values),
      data: { token }, on: { click: () => onSelect(prefix) },
    }, cells));
  }

  function head({ prefix }, onClose) {
    const where = prefix ? regard.say("app.after", { prefix }) : regard.say("app.first");
    const title = `${regard.say("app.alternatives")} `;
    return make("div", { class: "head" },
      make("h2", { class: "caption" }, title, make("span", { class: "muted", dir: "auto" }, where)),
      app.button("app.close", onClose, { class: "ghost", data: { role: "close" } }));
  }

  // Requests and draws alternatives. query: {model, text, prediction, position, prefix, search,
  // constraints}. onSelect gets the selected prefix; the button and Escape call onClose.
  app.showAlternatives = async (element, query, { onSelect, onClose, signal }) => {
    const body = make("div", { class: "muted" }, regard.say("app.working"));
    const panel = make("div", { class: "alternatives", role: "group", "aria-label": regard.say("app.alternatives"), on: {
      keydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); onClose(); } },
    } }, head(query, onClose), body);
    element.replaceChildren(panel);
    try {
      const response = await app.api.json("alternatives", {
        model: query.model.name, ...app.sourceFields(query.text, query.model), top: TOP,
        constraints: { ...query.constraints, prefix: query.prefix }, search: query.search,
      }, signal);
      const rows = response.alternatives.map((one) => row(one, query, onSelect));
      body.replaceWith(make("ol", { class: "options" }, rows));
      const first = panel.querySelector("button.option");
      (first || panel.querySelector("button")).focus({ preventScroll: true });
    } catch (error) {
      if (error.name !== "AbortError") app.showError(body, error);
    }
  };
})();
