// Views of a prediction by task: the text, its tokens, warnings and the n-best list.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const LONG_TEXT = 240; // characters above which the font is smaller
  const MAX_LABELS = 12; // labels listed before "all"

  function meter(p) {
    const level = Math.max(0, Math.min(1, p));
    return make("span", { class: level < 0.5 ? "meter low" : "meter", style: { "--p": level.toFixed(4) } });
  }
  app.meter = meter;

  function textNodes(text, other) {
    if (text === "") return [make("span", { class: "muted" }, regard.say("app.nothing"))];
    return other === undefined || other === null ? [text] : app.markDifferences(text, other);
  }

  // The tokens with their probabilities; onToken(position, button) opens the alternatives.
  function tokens(prediction, onToken) {
    const names = [...(prediction.tokens || [])];
    const logprobs = prediction.token_logprobs || [];
    if (logprobs.length > names.length) names.push("</s>");
    const cells = names.map((name, position) => {
      const p = position < logprobs.length ? Math.exp(logprobs[position]) : null;
      const percent = make("small", { dir: "ltr" }, p === null ? "\u00a0" : regard.percent(p));
      const content = [regard.token(name), meter(p ?? 0), percent];
      if (p === null || !onToken) return make("li", {}, make("span", { class: "cell" }, content));
      return make("li", {}, make("button", {
        type: "button", class: "cell", data: { position }, "aria-expanded": "false",
        "aria-label": regard.say("app.token", { token: regard.plain(name), p: regard.percent(p) }),
        on: { click: (event) => onToken(position, event.currentTarget) },
      }, content));
    });
    const dir = regard.direction(names);
    const list = make("ol", { class: "strip", data: { role: "tokens" }, dir }, cells);
    if (onToken && cells.length) regard.roving(list, "button.cell");
    return list;
  }

  function nbestList({ nbest = [], text: best }) {
    if (nbest.length < 2) return null;
    const known = nbest.every(({ probability }) => typeof probability === "number");
    const rows = nbest.map(({ text, score, probability: p }) => make("li", {},
      make("span", { class: "number", title: regard.say("app.score", { score: regard.number(score, 3) }) },
        known ? regard.percent(p) : regard.number(score, 3)),
      known ? meter(p) : null,
      make("span", { dir: "auto", class: "output" }, textNodes(text, text === best ? null : best))));
    return make("div", { class: known ? "nbest" : "nbest scored", data: { role: "nbest" } },
      make("h2", { class: "caption" }, regard.say(known ? "app.predictions" : "app.predictions.scores")),
      make("ol", {}, rows));
  }

  function transduceView({ prediction, other, onToken }) {
    const size = prediction.text.length > LONG_TEXT ? "output main long" : "output main";
    return [
      make("p", { class: size, dir: "auto", data: { role: "text" } }, textNodes(prediction.text, other?.text)),
      tokens(prediction, onToken),
      make("div", { data: { role: "alternatives" } }),
      ...warnings(prediction),
      nbestList(prediction),
    ];
  }

  function tagView({ text, prediction, other }) {
    const tags = Array.isArray(prediction.value) ? prediction.value : prediction.text.split(" ");
    const cells = text.trim().split(/\s+/).filter(Boolean).map((word, position) => {
      const p = prediction.token_logprobs?.[position];
      const tag = tags[position] ?? "";
      const differs = other && (other.value || [])[position] !== tag;
      return make("li", {}, make("span", { class: "cell" },
        make("span", { class: "word", dir: "auto" }, word),
        make(differs ? "mark" : "b", { class: differs ? "differs tag" : "tag" }, tag),
        p === undefined ? null : meter(p),
        p === undefined ? null : make("small", { dir: "ltr" }, regard.percent(p))));
    });
    const dir = regard.direction([text]);
    return [make("ol", { class: "strip tags", data: { role: "text" }, dir }, cells)];
  }

  function classifyView({ prediction, other }) {
    const all = Object.entries(prediction.probabilities || {}).sort((a, b) => b[1] - a[1]);
    const predicted = new Set([prediction.value].flat());
    const row = ([label, p]) => make("li", { class: predicted.has(label) ? "predicted" : null },
      make("span", { class: "output", dir: "auto" }, label), meter(p),
      make("span", { class: "number" }, regard.percent(p)));
    const rest = all.slice(MAX_LABELS);
    return [
      make("p", { class: "output main", dir: "auto", data: { role: "text" } }, textNodes(prediction.text, other?.text)),
      make("ol", { class: "probabilities", data: { role: "probabilities" } }, all.slice(0, MAX_LABELS).map(row)),
      rest.length ? make("details", {}, make("summary", {}, regard.say("app.all", { count: all.length })),
        make("ol", { class: "probabilities" }, rest.map(row))) : null,
    ];
  }

  function regressView({ prediction, other }) {
    const numbers = prediction.text.replaceAll("\t", "  ");
    return [make("p", { class: "output value", data: { role: "text" } }, textNodes(numbers, other?.text))];
  }

  function languageModelView({ text, prediction, other }) {
    const prompt = prediction.text.startsWith(text) ? text : "";
    const skipPrompt = (output) => (output?.startsWith(prompt) ? output.slice(prompt.length) : output);
    return [make("p", { class: "output continuation", dir: "auto", data: { role: "text" } },
      prompt ? make("span", { class: "muted" }, prompt) : null,
      textNodes(skipPrompt(prediction.text), skipPrompt(other?.text)))];
  }

  const WAV = /^[A-Za-z0-9+/]+={0,2}$/; // base64

  // A player for a sound, if a prediction has one.
  function player({ value }) {
    if (value?.type !== "audio/wav" || !WAV.test(value.data)) return null;
    return make("audio", { controls: true, src: `data:audio/wav;base64,${value.data}`, "aria-label": regard.say("sound.play") });
  }

  function synthesizeView({ prediction }) {
    return [player(prediction), make("p", { class: "muted", data: { role: "text" } }, prediction.text)];
  }

  const VIEWS = {
    synthesize: synthesizeView, transduce: transduceView, tag: tagView, classify: classifyView, regress: regressView,
    "language-model": languageModelView,
  };

  function warnings(prediction) {
    const unknown = [...new Set(prediction.unknown_tokens || [])];
    const folded = prediction.folded || [];
    return [
      folded.length ? make("p", { class: "note", data: { role: "folded" } }, regard.say("app.folded"),
        folded.flatMap((one) => [" ", make("code", {}, one)])) : null,
      unknown.length ? make("p", { class: "note warn", data: { role: "unknown" } }, regard.say("app.unknown"),
        unknown.flatMap((one) => [" ", make("code", {}, regard.token(one))])) : null,
      prediction.truncated
        ? make("p", { class: "note warn", data: { role: "truncated" } }, regard.say("app.truncated")) : null,
    ];
  }

  // Score, confidence, number of tokens and latency in one line.
  app.predictionStats = ({ score, confidence, tokens: names, latency_ms: latency }) => [
    typeof score === "number"
      ? make("span", { title: regard.say("app.score.about"), data: { role: "score" } },
        regard.say("app.score", { score: regard.number(score, 3) })) : null,
    typeof confidence === "number"
      ? make("span", {}, regard.say("app.confidence", { p: regard.percent(confidence) })) : null,
    names?.length ? make("span", {}, regard.say("app.tokens", { count: names.length })) : null,
    typeof latency === "number" ? make("span", { data: { role: "latency" } },
      regard.say("app.milliseconds", { count: latency.toFixed(latency < 10 ? 1 : 0) })) : null,
  ];

  // The predictions of several texts, one row each.
  function itemsView({ prediction }) {
    return [make("ol", { class: "items", data: { role: "items" } }, prediction.items.map(({ text, prediction: one }) =>
      make("li", {}, make("span", { class: "muted", dir: "auto" }, text),
        make("span", { class: "output", dir: "auto", data: { role: "text" } }, textNodes(one.text)), player(one),
        ...warnings(one).filter(Boolean))))];
  }

  // Draws a prediction. view: {model, text, prediction, other: a prediction to compare with, onToken}.
  app.drawPrediction = (element, view) => {
    const { task } = view.model;
    const { items } = view.prediction;
    const [output, ...rest] = (items ? itemsView : VIEWS[task] || transduceView)(view);
    const parts = [output, ...(items || task === "transduce" ? [] : warnings(view.prediction)), ...rest];
    element.replaceChildren(...parts.filter(Boolean));
  };
})();
