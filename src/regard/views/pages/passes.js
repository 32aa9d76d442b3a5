"use strict";
// Searches that decode in parallel: lengths and passes of mask-predict, frames of CTC.
//
//   [data-length=N]                row of a candidate length; .best for the chosen one
//   [data-pass=N]                  a pass; .written tokens are those that it wrote
//   [data-frame=N]                 a frame; .blank for blanks; data-index: its output token
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  const BLANK = "\u00b7";

  const lengths = ({lengths}) => make("ol", {class: "bars lengths"}, lengths.map((one) =>
    make("li", {class: one.best ? "own" : "other", data: {length: one.length}},
      make("span", {class: "token"}, String(one.length)),
      make("span", {class: "bar"}, make("i", {style: {"--p": one.probability}})),
      make("span", {class: "number"}, regard.percent(one.probability)),
      make("span", {class: "came", dir: "auto"}, one.text))));

  const still = (text, p, kind, data) => make("span", {
    class: `chip-still step ${kind}`, data, title: regard.percent(p), style: {"--p": p},
  }, regard.token(text));

  const pass = (tokens, number) => make("div", {class: "tokens-row", data: {pass: number + 1}},
    make("h3", {}, regard.say("passes.pass", {pass: number + 1})),
    make("div", {class: "chips", dir: regard.direction(tokens.map((one) => one.token))},
      tokens.map((one) => still(one.token, one.probability, one.written ? "written" : "kept"))));

  const refinement = (search) => [
    make("p", {class: "lead"}, regard.say("passes.lead")),
    ...(search.lengths[0] && search.lengths[0].probability !== null
      ? [make("h3", {}, regard.say("passes.lengths")), lengths(search)] : []),
    make("div", {class: "passes"}, search.passes.map(pass)),
    make("p", {class: "note keys"},
      make("span", {}, make("i", {class: "swatch written"}), regard.say("passes.written")),
      make("span", {}, make("i", {class: "swatch confidence"}), regard.say("passes.confidence"))),
  ];

  // Frames of one source token, each with its output token.
  const frames = (search, {source}) => {
    const per = Math.max(1, Math.round(search.per_source));
    const groups = source.tokens.map((token, at) => [token, search.frames.slice(at * per, (at + 1) * per), at * per]);
    return [
      make("p", {class: "lead"}, regard.say("frames.lead", {blank: BLANK})),
      make("div", {class: "frames"}, groups.map(([token, own, first]) => make("div", {class: "frame-group"},
        make("span", {class: "frame-source"}, regard.token(token)),
        make("span", {class: "frame-cells"}, own.map((one, index) => still(
          one.token === null ? BLANK : one.token, one.probability, one.token === null ? "blank" : "written",
          {frame: first + index, index: one.index})))))),
    ];
  };

  regard.passes = ({data}) =>
    data.search.kind === "refinement" ? refinement(data.search) : frames(data.search, data);
})();
