// An answer as it is read: by the task of the model, with its tokens, notes and rivals.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const LONG = 240; // letters of an answer that would fill the window
  const SHOWN = 12; // labels of a classifier that are listed before "all"

  function meter(p) {
    const level = Math.max(0, Math.min(1, p));
    return make("span", { class: level < 0.5 ? "meter low" : "meter", style: { "--p": level.toFixed(4) } });
  }
  app.meter = meter;

  function words(text, other) {
    if (text === "") return [make("span", { class: "muted" }, regard.say("app.nothing"))];
    return other === undefined || other === null ? [text] : app.marked(text, other);
  }

  // The tokens of an answer, each with its probability; pick(place) asks what else could stand there.
  function tokens(answer, pick) {
    const names = [...(answer.tokens || [])];
    const scores = answer.token_logprobs || [];
    if (scores.length > names.length) names.push("</s>");
    const cells = names.map((name, place) => {
      const p = place < scores.length ? Math.exp(scores[place]) : null;
      const chance = make("small", { dir: "ltr" }, p === null ? "\u00a0" : regard.percent(p));
      const inside = [regard.token(name), meter(p ?? 0), chance];
      if (p === null || !pick) return make("li", {}, make("span", { class: "cell" }, inside));
      return make("li", {}, make("button", {
        type: "button", class: "cell", data: { place }, "aria-expanded": "false",
        "aria-label": regard.say("app.token", { token: regard.plain(name), p: regard.percent(p) }),
        on: { click: (event) => pick(place, event.currentTarget) },
      }, inside));
    });
    const dir = regard.direction(names);
    const list = make("ol", { class: "strip", data: { role: "tokens" }, dir }, cells);
    if (pick && cells.length) regard.roving(list, "button.cell");
    return list;
  }

  function rivals(answer, best) {
    const others = answer.nbest || [];
    if (others.length < 2) return null;
    const top = Math.max(...others.map((one) => one.score ?? 0));
    const rows = others.map((one) => make("li", {},
      make("span", { class: "number" }, regard.number(one.score, 3)),
      meter(Math.exp((one.score ?? 0) - top)),
      make("span", { dir: "auto", class: "said" }, words(one.text, one.text === best ? null : best))));
    return make("div", { class: "rivals", data: { role: "nbest" } },
      make("h2", { class: "caption" }, regard.say("app.others")), make("ol", {}, rows));
  }

  function transduced({ answer, other, pick }) {
    const size = answer.text.length > LONG ? "said main long" : "said main";
    return [
      make("p", { class: size, dir: "auto", data: { role: "text" } }, words(answer.text, other)),
      tokens(answer, pick),
      make("div", { data: { role: "alternatives" } }),
      ...notes(answer),
      rivals(answer, answer.text),
    ];
  }

  function tagged({ text, answer, otherAnswer }) {
    const tags = Array.isArray(answer.value) ? answer.value : answer.text.split(" ");
    const cells = text.trim().split(/\s+/).filter(Boolean).map((word, place) => {
      const p = answer.token_logprobs?.[place];
      const tag = tags[place] ?? "";
      const differs = otherAnswer && (otherAnswer.value || [])[place] !== tag;
      return make("li", {}, make("span", { class: "cell" },
        make("span", { class: "word", dir: "auto" }, word),
        make(differs ? "mark" : "b", { class: differs ? "differs tag" : "tag" }, tag),
        p === undefined ? null : meter(p),
        p === undefined ? null : make("small", { dir: "ltr" }, regard.percent(p))));
    });
    const dir = regard.direction([text]);
    return [make("ol", { class: "strip tags", data: { role: "text" }, dir }, cells)];
  }

  function classified({ answer, other }) {
    const all = Object.entries(answer.probabilities || {}).sort((a, b) => b[1] - a[1]);
    const given = new Set([answer.value].flat());
    const row = ([label, p]) => make("li", { class: given.has(label) ? "given" : null },
      make("span", { class: "said", dir: "auto" }, label), meter(p),
      make("span", { class: "number" }, regard.percent(p)));
    const rest = all.slice(SHOWN);
    return [
      make("p", { class: "said main", dir: "auto", data: { role: "text" } }, words(answer.text, other)),
      make("ol", { class: "shares", data: { role: "probabilities" } }, all.slice(0, SHOWN).map(row)),
      rest.length ? make("details", {}, make("summary", {}, regard.say("app.all", { count: all.length })),
        make("ol", { class: "shares" }, rest.map(row))) : null,
    ];
  }

  function measured({ answer, other }) {
    const numbers = answer.text.replaceAll("\t", "  ");
    return [make("p", { class: "said value", data: { role: "text" } }, words(numbers, other))];
  }

  function written({ text, answer, other }) {
    const begun = answer.text.startsWith(text) ? text : "";
    const said = make("p", { class: "said written", dir: "auto", data: { role: "text" } },
      begun ? make("span", { class: "muted" }, begun) : null,
      words(answer.text.slice(begun.length), other?.startsWith(begun) ? other.slice(begun.length) : other));
    return [said];
  }

  const DRAW = {
    transduce: transduced, tag: tagged, classify: classified, regress: measured, "language-model": written,
  };

  function notes(answer) {
    const unknown = [...new Set(answer.unknown_tokens || [])];
    return [
      unknown.length ? make("p", { class: "note warn", data: { role: "unknown" } }, regard.say("app.unknown"),
        unknown.flatMap((one) => [" ", make("code", {}, regard.token(one))])) : null,
      answer.truncated ? make("p", { class: "note warn", data: { role: "cut" } }, regard.say("app.cut")) : null,
    ];
  }

  // Score, time and size in one line.
  app.facts = ({ score, confidence, tokens: names, latency_ms: time }) => [
    typeof score === "number"
      ? make("span", { title: regard.say("app.score.about"), data: { role: "score" } },
        regard.say("app.score", { score: regard.number(score, 3) })) : null,
    typeof confidence === "number"
      ? make("span", {}, regard.say("app.confidence", { p: regard.percent(confidence) })) : null,
    names?.length ? make("span", {}, regard.say("app.tokens", { count: names.length })) : null,
    typeof time === "number" ? make("span", { data: { role: "time" } },
      regard.say("app.milliseconds", { count: time.toFixed(time < 10 ? 1 : 0) })) : null,
  ];

  // Draws an answer. shown: {model, text, answer, other: the text it is compared with, pick}.
  app.answer = (element, shown) => {
    const draw = DRAW[shown.model.task] || transduced;
    const [said, ...rest] = draw(shown);
    const parts = [said, ...(shown.model.task === "transduce" ? [] : notes(shown.answer)), ...rest];
    element.replaceChildren(...parts.filter(Boolean));
  };
})();
