// What else could stand at a place of an answer; choosing one lets the answer go on from there.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);

  function row(one, question, choose) {
    const begins = app.beginnings(one.prediction);
    const prefix = begins?.[question.place + 1];
    const now = one.prediction.tokens?.[question.place] === question.answer.tokens?.[question.place];
    const said = now ? [one.prediction.text] : app.marked(one.prediction.text, question.answer.text);
    const token = regard.token(one.token === "<eos>" ? "</s>" : one.token);
    token.title ||= one.token; // a very long one is cut short
    const inside = [
      token, app.meter(one.probability),
      make("span", { class: "number" }, regard.percent(one.probability)),
      make("span", { class: "said", dir: "auto" }, said),
    ];
    if (prefix === undefined || now) {
      const here = now ? { class: "now", "aria-current": "true" } : {};
      return make("li", here, make("span", { class: "option" }, inside));
    }
    const named = { token: regard.plain(one.token), p: regard.percent(one.probability), text: one.prediction.text };
    return make("li", {}, make("button", {
      type: "button", class: "option", "aria-label": regard.say("app.pick", named),
      data: { token: one.token }, on: { click: () => choose(prefix) },
    }, inside));
  }

  function head(question, close) {
    const { prefix } = question;
    const where = prefix ? regard.say("app.after", { prefix }) : regard.say("app.first");
    return make("div", { class: "head" },
      make("h2", { class: "caption" }, `${regard.say("app.choose")} `, make("span", { class: "muted", dir: "auto" }, where)),
      app.button("app.close", close, { class: "ghost", data: { role: "close" } }));
  }

  // Asks and draws. question: {model, text, answer, place, prefix, search, constraints}; choose gets
  // the beginning that was chosen; close is called by the button and by Escape.
  app.alternatives = async (element, question, { choose, close, signal }) => {
    const body = make("div", { class: "muted" }, regard.say("app.working"));
    const panel = make("div", { class: "choices", role: "group", "aria-label": regard.say("app.choose"), on: {
      keydown: (event) => { if (event.key === "Escape") { event.stopPropagation(); close(); } },
    } }, head(question, close), body);
    element.replaceChildren(panel);
    try {
      const found = await app.api.json("alternatives", {
        model: question.model.name, text: question.text, top: 6,
        constraints: { ...question.constraints, prefix: question.prefix }, search: question.search,
      }, signal);
      const rows = found.alternatives.map((one) => row(one, question, choose));
      body.replaceWith(make("ol", { class: "options" }, rows));
      const first = panel.querySelector("button.option");
      (first || panel.querySelector("button")).focus({ preventScroll: true });
    } catch (problem) {
      if (problem.name !== "AbortError") app.showError(body, problem);
    }
  };
})();
