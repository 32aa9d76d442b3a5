"use strict";
// All views of one inspection, drawn into an element and linked with each other.
//
// Hooks that stay (for tests and for pages that embed this), all within the given element:
//   section[data-part=tokens|attention|tree|saliency|gates|notes]   each view
//   [data-step=N]               answer token N, a button (aria-pressed); [data-read=N] source token N
//   [data-panel=step]           the chosen token: its probability and runners-up
//   [data-tab=encoder|decoder|cross|pooling]                            tabs (aria-selected)
//   [data-head="cross.1.3"]     small map of layer 1, head 3 (aria-pressed); "cross.1.mean", "cross.mean.mean"
//   [data-large=attention][data-shown="cross.1.3"]                   the large map and which one it is
//   [data-order=place|entropy|ablation], [data-view=heat|lines]      buttons (aria-pressed)
//   [data-cells=map]            the field of cells; [data-says=map] the sentence about what is marked
//   [data-axis=source|target|inputs][data-index=N]    every name of a token; .marked when linked, .chosen
//   [data-table=map]            the numbers as a table (details)
//   [data-tree=room], [data-node=ID], [data-pruned] (checkbox), [data-says=tree]
//   [data-saliency=source|inputs], [data-gates] (select), [data-gate=forget] (figure)
//   [data-theme=auto|light|dark], [data-language=en|zh]              buttons of regard.switches
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  const FEW = 40; // pruned branches that are shown at once

  // Who listens to what: "mark" (tokens pointed at), "choose" (an answer token), "theme", "end".
  // A room of the bus can be cleared when what is in it is drawn anew.
  const makeBus = (state) => {
    let listeners = [];
    let marks = [];
    const inRoom = (room) => ({
      on: (name, react) => listeners.push({name, react, room}),
      clear: () => {
        listeners.filter((one) => one.room === room && one.name === "end").forEach((one) => one.react());
        listeners = listeners.filter((one) => one.room !== room);
      },
      again: () => tell("mark", marks),
      mark, leave, choose, link,
    });
    const tell = (name, value) => {
      for (const one of [...listeners]) if (one.name === name) one.react(value);
    };
    const mark = (given) => {
      if (JSON.stringify(given) === JSON.stringify(marks)) return;
      marks = given;
      tell("mark", marks);
    };
    // A finger that is lifted leaves its mark, or nobody could read what it says.
    const leave = (event) => { if (event.pointerType !== "touch") mark([]); };
    const choose = (index) => {
      state.step = index;
      tell("choose", index);
      tell("mark", marks);
    };
    // A name of a token: pointing at it or focusing it marks it everywhere.
    const link = (node, own) => {
      node.addEventListener("pointerenter", () => mark([own]));
      node.addEventListener("pointerleave", leave);
      node.addEventListener("focus", () => mark([own]));
      node.addEventListener("blur", () => mark([]));
    };
    return {
      ...inRoom("all"), tell, room: inRoom,
      only: (name, room, react) => { inRoom(room).clear(); inRoom(room).on(name, react); },
    };
  };

  // Lights up every name of the marked tokens, and of the chosen one, in all views.
  const lightUp = (element, marks, step) => {
    const give = (name, places) => {
      for (const node of element.querySelectorAll(`.${name}`)) node.classList.remove(name);
      for (const {axis, index} of places) {
        const same = element.querySelectorAll(`[data-axis="${axis}"][data-index="${index}"]`);
        for (const node of same) node.classList.add(name);
      }
    };
    give("marked", marks);
    give("chosen", [{axis: "target", index: step}]);
  };

  const sections = (data) => [
    ["tokens", data.steps.length > 0, regard.tokens],
    ["attention", data.attention.length > 0, regard.attention],
    ["tree", data.tree && data.tree.nodes.length > 0, regard.tree],
    ["saliency", Boolean(data.saliency), regard.saliency],
    ["gates", data.gates.length > 0, regard.gates],
    ["notes", regard.remarks(data).length > 0, regard.notes],
  ];

  // Views below the window are drawn when they come near it, so the first is there at once.
  const lazily = (section, bus, build) => {
    const end = () => { watcher.disconnect(); window.removeEventListener("beforeprint", now); };
    const now = () => { end(); build(); };
    const watcher = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting)) now();
    }, {rootMargin: "600px"});
    watcher.observe(section);
    window.addEventListener("beforeprint", now);
    bus.on("end", end);
  };

  // What is good to know about the answer as a whole, as sentences.
  regard.remarks = (data) => [
    data.truncated ? regard.say("remark.truncated") : null,
    data.unknown_tokens && data.unknown_tokens.length ? regard.say("remark.unknown", {tokens: data.unknown_tokens.join(" ")}) : null,
    ...data.notes.map((text, place) => regard.noted(text, data.note_keys && data.note_keys[place])),
  ].filter(Boolean);

  regard.notes = ({data}) => [make("ul", {class: "remarks"},
    regard.remarks(data).map((text) => make("li", {dir: "auto"}, text)))];

  // Draws everything; `destroy` lets go of all listeners and empties the element.
  regard.inspection = (element, data) => {
    const state = {
      step: 0, tab: null, heads: {}, view: "heat", order: "place", gates: null,
      // In a narrow room they would only be far apart, and many push the kept ones out of sight.
      pruned: element.clientWidth > 700 && regard.pruned(data.tree).length <= FEW,
    };
    const axes = {
      source: data.source.tokens, target: data.target.tokens, inputs: data.inputs, one: [regard.say("axis.one")],
    };
    let bus = null;
    const draw = () => {
      if (bus) bus.tell("end");
      bus = makeBus(state);
      axes.one = [regard.say("axis.one")];
      const context = {data, state, axes, bus};
      bus.on("mark", (marks) => lightUp(element, marks, state.step));
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
          bus.again();
        };
        if (["tokens", "attention", "notes"].includes(name)) add();
        else lazily(section, bus, add);
      }
    };
    const dress = () => bus.tell("theme");
    draw();
    document.addEventListener("regard:language", draw);
    document.addEventListener("regard:theme", dress);
    return {
      destroy: () => {
        bus.tell("end");
        document.removeEventListener("regard:language", draw);
        document.removeEventListener("regard:theme", dress);
        element.replaceChildren();
        element.classList.remove("inspection");
      },
    };
  };
})();
