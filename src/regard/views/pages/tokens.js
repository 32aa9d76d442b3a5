"use strict";
// Source and output as rows of tokens; the selected one with its probability and alternatives.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;

  const chip = (context, axis, index, text, attributes) => {
    const button = make("button", {
      type: "button", class: "chip", ...attributes, data: {axis, index, ...attributes.data},
    }, regard.token(text));
    context.bus.link(button, {axis, index});
    return button;
  };

  const row = (name, tokens, chips) => make("div", {class: "tokens-row"},
    make("h3", {}, name),
    regard.roving(make("div", {
      class: "chips", role: "group", "aria-label": name, dir: regard.direction(tokens),
    }, chips), ".chip"));

  const certainty = (step) => "value" in step ? regard.number(step.value) : regard.percent(step.probability);

  const output = (context) => {
    const {data, bus, state} = context;
    const chips = data.steps.map((step, index) => chip(context, "target", index, step.token ?? "", {
      class: step.given ? "chip step given" : "chip step", "aria-pressed": String(index === state.step),
      "aria-label": `${regard.plain(step.token ?? "")} ${certainty(step)}`,
      title: certainty(step) + (step.given ? regard.say("comma") + regard.say("tokens.prompt") : ""),
      data: {step: index},
      style: {"--p": "value" in step ? 1 : step.probability, "--bar": "value" in step ? 0 : 1},
      on: {click: () => bus.choose(index)},
    }));
    bus.on("choose", (chosen) => chips.forEach((button, index) =>
      button.setAttribute("aria-pressed", String(index === chosen))));
    const name = regard.say(data.target.forced ? "tokens.forced" : "tokens.output");
    return row(name, data.steps.map((step) => step.token ?? ""), chips);
  };

  // Source tokens, colored by their saliency for the selected output token.
  const source = (context) => {
    const {data, bus} = context;
    // The tokens of a language model depend on the previous ones.
    const axis = data.saliency ? data.saliency.columns : "source";
    const tokens = axis === "source" ? data.source.tokens : data.inputs;
    const chips = tokens.map((text, index) => chip(context, axis, index, text, {
      class: "chip read", data: {read: index},
    }));
    const tint = (chosen) => {
      const shares = regard.saliencyOfStep(data, axis, chosen);
      chips.forEach((button, index) => button.style.setProperty("--share", shares ? shares[index] : 0));
    };
    bus.on("choose", tint);
    tint(context.state.step);
    return row(regard.say(`tokens.${axis}`), tokens, chips);
  };

  // The model's own output next to a given target: tokens that differ are marked. The number is the
  // probability of the target token after the model's own tokens, below the first difference.
  const own = (context) => {
    const {data} = context;
    const steps = data.own || [];
    if (!steps.length) return null;
    const differs = steps.map((one, index) => one.token !== data.steps[index].token);
    const first = differs.indexOf(true);
    const chips = steps.map((one, index) => {
      const p = first >= 0 && index > first && one.probability !== null ? regard.percent(one.probability) : null;
      const label = one.token === "" ? regard.say("tokens.ended") : regard.plain(one.token);
      return make("span", {
        class: differs[index] ? "chip-still differs" : "chip-still", data: {own: index},
        title: p === null ? label : regard.say("tokens.ownP", {token: regard.plain(data.steps[index].token), p}),
      }, one.token === "" ? "\u2013" : regard.token(one.token), p === null ? null : make("small", {}, p));
    });
    return make("div", {class: "tokens-row"}, make("h3", {}, regard.say("tokens.own")),
      make("div", {class: "chips", dir: regard.direction(data.steps.map((step) => step.token))}, chips),
      make("p", {class: "note"}, regard.say(first < 0 ? "tokens.same" : "tokens.differs", {position: first + 1})));
  };

  const bar = (text, p, kind) => make("li", {class: kind},
    regard.token(text),
    make("span", {class: "bar"}, make("i", {style: {"--p": p}})),
    make("span", {class: "number"}, regard.percent(p)));

  const details = (context, index) => {
    const {data} = context;
    const step = data.steps[index];
    const whole = ["classify", "regress"].includes(data.model.task);
    const head = make("h3", {}, regard.say(whole ? "tokens.outputPosition" : "tokens.position",
      {position: index + 1, count: data.steps.length}));
    if ("value" in step) {
      return [head, make("p", {class: "value"}, regard.number(step.value))];
    }
    const list = [[step.token, step.probability, "own"], ...step.alternatives.map(([text, p]) => [text, p, "other"])]
      .sort((one, other) => other[1] - one[1]);
    // Probabilities of multi-label outputs do not sum to one.
    const rest = data.model.task === "classify" ? 0 : 1 - list.reduce((sum, [, p]) => sum + p, 0);
    const left = rest > 0.0005
      ? make("p", {class: "note"}, regard.say("tokens.rest", {p: regard.percent(rest)})) : null;
    return [head, make("ol", {class: "bars"}, list.map(([text, p, kind]) => bar(text, p, kind))), left];
  };

  // Legend of the colors of both rows.
  const key = (data) => {
    const plain = data.steps.some((step) => "value" in step);
    const entry = (kind, words) => make("span", {}, make("i", {class: `swatch ${kind}`}), words);
    return make("p", {class: "note keys"},
      plain ? null : entry("confidence", regard.say("tokens.confidence")),
      data.steps.some((step) => step.given) ? entry("given", regard.say("tokens.prompt")) : null,
      data.saliency && !data.picture ? entry("saliency", regard.say("tokens.saliency")) : null);
  };

  regard.tokens = (context) => {
    const {data, bus, state} = context;
    const panel = make("div", {class: "panel", data: {panel: "step"}, "aria-live": "polite"});
    const show = (index) => {
      if (data.steps[index]) panel.replaceChildren(...details(context, index).filter(Boolean));
    };
    bus.on("choose", show);
    show(state.step);
    return [make("div", {class: "tokens"},
      make("div", {class: "tokens-rows"}, data.picture ? null : source(context), output(context), own(context), key(data)), panel)];
  };
})();
