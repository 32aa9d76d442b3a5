"use strict";
// The tree of beam search, left to right: what was tried, what was pruned, where greedy would go.
(() => {
  const regard = window.regard = window.regard || {};
  const {make, shape} = regard;
  const ROW = 29, TALL = 23, GAP = 34, PAD = 9;
  const LONGEST = 24; // letters of a token that a node shows; its label and the line below have all
  const LONG = 160; // letters of a text that would fill the window
  const ruler = document.createElement("canvas").getContext("2d");

  const wide = (text, font) => { ruler.font = font; return ruler.measureText(text).width; };

  const chance = (node) => {
    if (node.probability === null || node.probability === undefined) return "";
    return node.probability < 0.005 ? "<1" : String(Math.round(node.probability * 100));
  };

  // The best way is the trunk; twigs that end soon lie next to it, long branches further down.
  const byRank = (one, other) => {
    const rank = (node) => [node.best ? 0 : 1, node.reach, node.greedy ? 0 : 1, -node.total];
    const first = rank(one), second = rank(other);
    const at = first.findIndex((value, place) => value !== second[place]);
    return at < 0 ? 0 : first[at] - second[at];
  };

  // The nodes as objects with children, the good ways first; `pruned` says whether those are in.
  const grown = (tree, pruned, family) => {
    const root = {id: null, children: [], depth: 0, parent: null};
    const known = new Map([[null, root]]);
    for (const node of tree.nodes) known.set(node.id, {...node, children: []});
    for (const node of tree.nodes) {
      const own = known.get(node.id);
      own.parent = known.get(node.parent ?? null);
      if (pruned || node.status !== "pruned") own.parent.children.push(own);
    }
    const all = [root];
    for (const node of all) {
      for (const child of node.children) { child.depth = node.depth + 1; all.push(child); }
    }
    for (const node of [...all].reverse()) {
      node.children.sort(byRank);
      node.reach = node.children.reduce((most, child) => Math.max(most, child.reach + 1), 0);
    }
    for (const node of all) {
      node.text = node.id === null ? "" : regard.plain(node.token);
      const letters = [...node.text];
      node.shown = letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}\u2026` : node.text;
      const score = Number.isFinite(node.score) ? regard.number(node.score, 2) : "";
      node.aside = [chance(node), score].filter(Boolean).join("  ");
      const beside = node.aside ? 6 + wide(node.aside, `10.5px ${family}`) : 0;
      node.width = node.id === null ? 10 : Math.max(24, wide(node.shown, `13px ${family}`) + beside + 2 * PAD);
    }
    return all;
  };

  // Rows by contour: each child lies under the one before as closely as their branches allow.
  const place = (all) => {
    for (const node of [...all].reverse()) {
      node.bottom = [0];
      node.children.forEach((child, nth) => {
        let down = 0;
        if (nth) {
          child.bottom.forEach((_, depth) => {
            if (depth + 1 < node.bottom.length) down = Math.max(down, node.bottom[depth + 1] + 1);
          });
        }
        child.down = down;
        child.bottom.forEach((bottom, depth) => { node.bottom[depth + 1] = down + bottom; });
      });
    }
    const columns = [];
    for (const node of all) {
      node.row = node.parent && node.id !== null ? node.parent.row + node.down : 0;
      columns[node.depth] = Math.max(columns[node.depth] || 0, node.width);
    }
    let x = 4;
    const lefts = columns.map((width) => { const left = x; x += width + GAP; return left; });
    for (const node of all) { node.x = lefts[node.depth]; node.y = node.row * ROW + ROW / 2 + 2; }
    return {width: x - GAP + 6, height: (Math.max(...all.map((node) => node.row)) + 1) * ROW + 4};
  };

  const wayTo = (node) => {
    const way = [];
    for (let at = node; at && at.id !== null; at = at.parent) way.unshift(at);
    return way;
  };

  const kind = (node) => [node.best ? "best" : "", node.greedy ? "greedy" : "", node.status].filter(Boolean).join(" ");

  const edges = (node) => {
    const from = node.parent.x + node.parent.width, to = node.x;
    const bend = (to - from) * 0.55;
    const path = (shift) => {
      const start = node.parent.y + shift, end = node.y + shift;
      return `M${from} ${start}C${from + bend} ${start} ${to - bend} ${end} ${to} ${end}`;
    };
    if (node.best && node.greedy) {
      return [shape("path", {class: "edge best", d: path(-1.6)}), shape("path", {class: "edge greedy", d: path(1.6)})];
    }
    return [shape("path", {class: `edge ${kind(node)}`, d: path(0)})];
  };

  const label = (node) => {
    const facts = [
      regard.say("tree.p", {p: regard.percent(node.probability)}),
      regard.say("tree.total", {total: regard.number(node.total)}),
    ];
    if (Number.isFinite(node.score)) facts.push(regard.say("tree.score", {score: regard.number(node.score)}));
    facts.push(regard.say(node.greedy_only ? "tree.greedyOnly" : `tree.${node.status}`));
    if (node.best) facts.push(regard.say("tree.onBest"));
    if (node.greedy) facts.push(regard.say("tree.onGreedy"));
    return facts.join(regard.say("comma"));
  };

  // What a node says: the way to it, token by token, then its numbers.
  const story = (node) => [
    make("span", {class: "way", dir: regard.direction(wayTo(node).map((one) => one.token))},
      wayTo(node).map((one) => make("span", {class: "chip-still"}, regard.token(one.token)))),
    make("span", {}, label(node)),
  ];

  const drawNode = (context, node, tell) => {
    const last = node.x + node.width - PAD;
    const turned = regard.direction([node.token]) === "rtl";
    const group = shape("g", {
      class: `node ${kind(node)}`, role: "button", tabindex: "-1", data: {node: node.id},
      "aria-label": wayTo(node).map((one) => one.text).join(" ") + regard.say("comma") + label(node),
      on: {pointerenter: () => tell(node), focus: () => tell(node), click: () => tell(node)},
    },
    shape("rect", {x: node.x, y: node.y - TALL / 2, width: node.width, height: TALL, rx: 6}),
    shape("text", {x: node.x + PAD, y: node.y + 4.5, class: /^<.*>$/.test(node.token) ? "sign" : "name",
      direction: turned ? "rtl" : null, "text-anchor": turned ? "end" : null}, node.shown),
    shape("text", {x: last, y: node.y + 4, class: "aside"}, node.aside));
    if (node.best && !context.data.target.forced && node.depth <= context.axes.target.length) {
      Object.assign(group.dataset, {axis: "target", index: node.depth - 1});
      context.bus.link(group, {axis: "target", index: node.depth - 1});
    }
    return group;
  };

  const picture = (context, room, says) => {
    const {data: {tree}, state} = context;
    const all = grown(tree, state.pruned, getComputedStyle(document.body).fontFamily);
    const size = place(all);
    const real = all.filter((node) => node.id !== null)
      .sort((one, other) => one.depth - other.depth || one.row - other.row);
    const groups = new Map();
    const tell = (node) => {
      says.replaceChildren(...story(node));
      const way = new Set(wayTo(node));
      for (const [one, group] of groups) group.classList.toggle("on-way", way.has(one));
    };
    for (const node of real) groups.set(node, drawNode(context, node, tell));
    const drawn = [...real].sort((one, other) => Boolean(one.best || one.greedy) - Boolean(other.best || other.greedy));
    const svg = shape("svg", {
      class: "tree", width: size.width, height: size.height, viewBox: `0 0 ${size.width} ${size.height}`,
      role: "group", "aria-label": regard.say("tree.title"),
      tabindex: "-1", // Chromium stops at drawings that listen for the focus
    }, shape("circle", {class: "origin", cx: all[0].x + 5, cy: all[0].y, r: 5}),
    drawn.flatMap(edges), [...groups.values()]);
    room.replaceChildren(svg);
    regard.roving(svg, ".node");
  };

  // What a way came to, with the color of its line.
  const outcome = (tree, way, same) => make("li", {class: same ? "both" : way, data: {outcome: way}},
    make("i", {class: "way-line"}),
    make("span", {class: "label"}, regard.say(same ? "tree.both" : `tree.${way}Way`)),
    make("b", {dir: "auto", class: (tree[way] || "").length > LONG ? "long" : null}, tree[way] || regard.say("sign.nothing")),
    tree.scores && Number.isFinite(tree.scores[way])
      ? make("span", {class: "note"}, regard.say("tree.score", {score: regard.number(tree.scores[way])})) : null);

  regard.pruned = (tree) => tree ? tree.nodes.filter((node) => node.status === "pruned") : [];

  regard.tree = (context) => {
    const {data: {tree}, state} = context;
    const says = make("p", {class: "says", data: {says: "tree"}, "aria-live": "polite"}, regard.say("tree.hint"));
    const room = regard.scroller(regard.say("tree.title"), null, {class: "scroll tree-room", data: {tree: "room"}});
    const count = regard.pruned(tree).length;
    const box = make("input", {type: "checkbox", data: {pruned: "toggle"}, on: {change: () => {
      state.pruned = box.checked;
      picture(context, room, says);
    }}});
    box.checked = state.pruned;
    const same = tree.best === tree.greedy && tree.nodes.every((node) => !node.best === !node.greedy);
    picture(context, room, says);
    return [make("p", {class: "lead"}, regard.say("tree.lead", {beam: tree.beam})),
      make("ul", {class: "outcomes"}, outcome(tree, "best", same),
        same || typeof tree.greedy !== "string" ? null : outcome(tree, "greedy")),
      count ? make("label", {class: "check"}, box, make("span", {}, regard.say("tree.showPruned", {count}))) : null,
      room, says].filter(Boolean);
  };
})();
