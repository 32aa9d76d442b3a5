"use strict";
// All views of one inspection, rendered into an element and linked with each other.
//
// Stable attributes (for tests and for embedding pages), all inside the given element:
//   section[data-part=tokens|picture|sound|graph|attention|passes|tree|saliency|gates|notes]   each view
//   [data-step=N]               output token N, a button (aria-pressed); [data-read=N] source token N
//   [data-panel=step]           the selected token: its probability and alternatives
//   [data-tab=encoder|decoder|cross|pooling]                            tabs (aria-selected)
//   [data-head="cross.1.3"]     small map of layer 1, head 3 (aria-pressed); "cross.1.mean", "cross.mean.mean"
//   [data-large=attention][data-shown="cross.1.3"]                   the large map and its name
//   [data-order=layer|entropy|ablation], [data-view=heat|lines]      buttons (aria-pressed)
//   [data-cells=map]            the cells; [data-says=map] a sentence about the highlighted cell
//   [data-axis=source|target|inputs][data-index=N]    every token label; .marked when highlighted, .chosen when selected
//   [data-table=map]            the values as a table (details)
//   [data-tree=pane], [data-node=ID], [data-pruned] (checkbox), [data-says=tree]
//   [data-saliency=source|inputs], [data-gates] (select), [data-gate=forget] (figure)
//   [data-picture=frame], [data-overlay=none|saliency|class|attention] (buttons), [data-picture-layer],
//   [data-picture-head], [data-picture-query] (selects), [data-says=picture], [data-tiles=filters|maps],
//   [data-field=image] [data-says=field]   the receptive field of a clicked cell
//   svg[data-graph=drawing], [data-graph-layer], [data-graph-head] (selects)
//   [data-theme=auto|light|dark], [data-language=en|zh]              buttons of regard.switches
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  const MAX_PRUNED = 40; // pruned branches that are shown by default

  // Event bus: "mark" (highlighted tokens), "choose" (selected output token), "theme", "end".
  // Listeners are grouped; a group is cleared when its view is redrawn.
  const makeBus = (state) => {
    let listeners = [];
    let marks = [];
    const inGroup = (group) => ({
      on: (name, react) => listeners.push({name, react, group}),
      clear: () => {
        listeners.filter((one) => one.group === group && one.name === "end").forEach((one) => one.react());
        listeners = listeners.filter((one) => one.group !== group);
      },
      repeat: () => emit("mark", marks),
      mark, leave, choose, link,
    });
    const emit = (name, value) => {
      for (const one of [...listeners]) if (one.name === name) one.react(value);
    };
    const mark = (next) => {
      if (JSON.stringify(next) === JSON.stringify(marks)) return;
      marks = next;
      emit("mark", marks);
    };
    // On touch screens the highlight stays when the finger is lifted, so that its text can be read.
    const leave = (event) => { if (event.pointerType !== "touch") mark([]); };
    const choose = (index) => {
      state.step = index;
      emit("choose", index);
      emit("mark", marks);
    };
    // Highlight a token in all views when its label is hovered or focused.
    const link = (node, own) => {
      node.addEventListener("pointerenter", () => mark([own]));
      node.addEventListener("pointerleave", leave);
      node.addEventListener("focus", () => mark([own]));
      node.addEventListener("blur", () => mark([]));
    };
    return {
      ...inGroup("all"), emit, group: inGroup,
      only: (name, group, react) => { inGroup(group).clear(); inGroup(group).on(name, react); },
    };
  };

  // Highlight all labels of the marked tokens and of the selected one.
  const highlight = (element, marks, step) => {
    const setClass = (name, tokens) => {
      for (const node of element.querySelectorAll(`.${name}`)) node.classList.remove(name);
      for (const {axis, index} of tokens) {
        const same = element.querySelectorAll(`[data-axis="${axis}"][data-index="${index}"]`);
        for (const node of same) node.classList.add(name);
      }
    };
    setClass("marked", marks);
    setClass("chosen", [{axis: "target", index: step}]);
  };

  const sections = (data) => [
    ["tokens", data.steps.length > 0, regard.tokens],
    ["picture", Boolean(data.picture), regard.picture],
    ["sound", Boolean(data.sound), regard.sound],
    ["graph", Boolean(data.graph && data.graph.nodes), regard.graph],
    ["attention", data.attention.length > 0, regard.attention],
    ["passes", Boolean(data.search), regard.passes],
    ["tree", data.tree && data.tree.nodes.length > 0, regard.tree],
    ["saliency", Boolean(data.saliency), regard.saliency],
    ["gates", data.gates.length > 0, regard.gates],
    ["notes", regard.remarks(data).length > 0, regard.notes],
  ];

  // Views below the fold are rendered when they are about to become visible.
  const lazily = (section, bus, build) => {
    const end = () => { watcher.disconnect(); window.removeEventListener("beforeprint", now); };
    const now = () => { end(); build(); };
    const watcher = new IntersectionObserver((entries) => {
      if (entries.some((one) => one.isIntersecting)) now();
    }, {rootMargin: "600px"});
    watcher.observe(section);
    window.addEventListener("beforeprint", now);
    bus.on("end", end);
  };

  // Warnings and notes about the output, as sentences.
  regard.remarks = (data) => [
    data.truncated ? regard.say("remark.truncated") : null,
    data.unknown_tokens && data.unknown_tokens.length ? regard.say("remark.unknown", {tokens: data.unknown_tokens.join(" ")}) : null,
    ...data.notes.map((text, index) => regard.noted(text, data.note_keys && data.note_keys[index])),
  ].filter(Boolean);

  regard.notes = ({data}) => [make("ul", {class: "remarks"},
    regard.remarks(data).map((text) => make("li", {dir: "auto"}, text)))];

  // Render everything; `destroy` removes all listeners and empties the element.
  regard.inspection = (element, data) => {
    const state = {
      step: 0, tab: null, heads: {}, view: "heat", order: "layer", gates: null,
      // Hidden on narrow screens, or if there are too many.
      pruned: element.clientWidth > 700 && regard.pruned(data.tree).length <= MAX_PRUNED,
    };
    const axes = {
      source: data.source.tokens, target: data.target.tokens, inputs: data.inputs, one: [regard.say("axis.one")],
    };
    let bus = null;
    const draw = () => {
      if (bus) bus.emit("end");
      bus = makeBus(state);
      axes.one = [regard.say("axis.one")];
      const context = {data, state, axes, bus};
      bus.on("mark", (marks) => highlight(element, marks, state.step));
      element.classList.add("inspection");
      element.replaceChildren();
      for (const [name, present, build] of sections(data)) {
        if (!present) continue;
        const id = regard.fresh(name);
        const section = make("section", {data: {part: name}, "aria-labelledby": id},
          make("h2", {id}, regard.say(`${name}.title`)));
        element.append(section);
        const add = () => {
          section.append(...build(context));
          bus.repeat();
        };
        if (["tokens", "picture", "sound", "graph", "attention", "notes"].includes(name)) add();
        else lazily(section, bus, add);
      }
    };
    const onTheme = () => bus.emit("theme");
    draw();
    document.addEventListener("regard:language", draw);
    document.addEventListener("regard:theme", onTheme);
    return {
      destroy: () => {
        bus.emit("end");
        document.removeEventListener("regard:language", draw);
        document.removeEventListener("regard:theme", onTheme);
        element.replaceChildren();
        element.classList.remove("inspection");
      },
    };
  };
})();
