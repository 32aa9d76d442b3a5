"use strict";
// The search tree: kept and pruned branches, the best and the greedy path.
(() => {
  const regard = window.regard = window.regard || {};
  const {make, shape} = regard;
  const TALL = 23, PAD = 9;
  const SCROLLBAR = 16; // pixels
  const MAX_TOKEN = 24; // characters shown in a node; its label has the full token
  const LONG = 160; // characters above which a text is set small
  const ruler = document.createElement("canvas").getContext("2d");

  const textWidth = (text, font) => { ruler.font = font; return ruler.measureText(text).width; };

  const percentage = (node) => {
    if (node.probability === null || node.probability === undefined) return "";
    return node.probability < 0.005 ? "<1" : String(Math.round(node.probability * 100));
  };

  // Sort siblings: the best path first, then short branches, then long ones.
  const byRank = (one, other) => {
    const rank = (node) => [node.best ? 0 : 1, node.height, node.greedy ? 0 : 1, -node.total];
    const first = rank(one), second = rank(other);
    const at = first.findIndex((value, index) => value !== second[index]);
    return at < 0 ? 0 : first[at] - second[at];
  };

  // Return the nodes with their sorted children; `pruned`: include pruned ones.
  const buildNodes = (tree, pruned, family) => {
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
      node.height = node.children.reduce((most, child) => Math.max(most, child.height + 1), 0);
    }
    for (const node of all) {
      node.text = node.id === null ? "" : regard.plain(node.token);
      const chars = [...node.text];
      node.shown = chars.length > MAX_TOKEN ? `${chars.slice(0, MAX_TOKEN - 1).join("")}\u2026` : node.text;
      const score = Number.isFinite(node.score) ? regard.number(node.score, 2) : "";
      node.aside = [percentage(node), score].filter(Boolean).join("  ");
      const asideWidth = node.aside ? 6 + textWidth(node.aside, `10.5px ${family}`) : 0;
      node.width = node.id === null ? 10 : Math.max(24, textWidth(node.shown, `13px ${family}`) + asideWidth + 2 * PAD);
    }
    return all;
  };

  const pathTo = (node) => {
    const path = [];
    for (let at = node; at && at.id !== null; at = at.parent) path.unshift(at);
    return path;
  };

  const kind = (node) => [node.best ? "best" : "", node.greedy ? "greedy" : "", node.status].filter(Boolean).join(" ");

  const curve = (node, down) => {
    const {parent} = node;
    const [from, to] = down
      ? [parent.y + (parent.id === null ? 5 : TALL / 2), node.y - TALL / 2] : [parent.x + parent.width, node.x];
    const [start, end] = down ? [parent.x + parent.width / 2, node.x + node.width / 2] : [parent.y, node.y];
    const bend = (to - from) * 0.55;
    const point = (along, across) => (down ? `${across} ${along}` : `${along} ${across}`);
    return (shift) => `M${point(from, start + shift)}C${point(from + bend, start + shift)} `
      + `${point(to - bend, end + shift)} ${point(to, end + shift)}`;
  };

  const edges = (node, down) => {
    const path = curve(node, down);
    if (node.best && node.greedy) {
      return [shape("path", {class: "edge best", d: path(-1.6)}), shape("path", {class: "edge greedy", d: path(1.6)})];
    }
    return [shape("path", {class: `edge ${kind(node)}`, d: path(0)})];
  };

  const label = (node) => {
    const parts = [
      regard.say("tree.p", {p: regard.percent(node.probability)}),
      regard.say("tree.total", {total: regard.number(node.total)}),
    ];
    if (Number.isFinite(node.score)) parts.push(regard.say("tree.score", {score: regard.number(node.score)}));
    parts.push(regard.say(node.greedy_only ? "tree.greedyOnly" : `tree.${node.status}`));
    if (node.best) parts.push(regard.say("tree.onBest"));
    if (node.greedy) parts.push(regard.say("tree.onGreedy"));
    return parts.join(regard.say("comma"));
  };

  // The description of a node: its prefix, token by token, then its statistics.
  const describe = (node) => [
    make("span", {class: "prefix", dir: regard.direction(pathTo(node).map((one) => one.token))},
      pathTo(node).map((one) => make("span", {class: "chip-still"}, regard.token(one.token)))),
    make("span", {}, label(node)),
  ];

  const drawNode = (context, node, select) => {
    const last = node.x + node.width - PAD;
    const turned = regard.direction([node.token]) === "rtl";
    const group = shape("g", {
      class: `node ${kind(node)}`, role: "button", tabindex: "-1", data: {node: node.id},
      "aria-label": pathTo(node).map((one) => one.text).join(" ") + regard.say("comma") + label(node),
      on: {pointerenter: () => select(node), focus: () => select(node), click: () => select(node)},
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

  const render = (context, pane, says, room) => {
    const {data: {tree}, state} = context;
    const all = buildNodes(tree, state.pruned, getComputedStyle(document.body).fontFamily);
    const size = regard.layOutTree(all, room);
    const real = all.filter((node) => node.id !== null)
      .sort((one, other) => one.depth - other.depth || one.row - other.row);
    const groups = new Map();
    const select = (node) => {
      says.replaceChildren(...describe(node));
      const path = new Set(pathTo(node));
      for (const [one, group] of groups) group.classList.toggle("on-path", path.has(one));
    };
    for (const node of real) groups.set(node, drawNode(context, node, select));
    const drawn = [...real].sort((one, other) => Boolean(one.best || one.greedy) - Boolean(other.best || other.greedy));
    const svg = shape("svg", {
      class: "tree", width: size.width * size.scale, height: size.height * size.scale,
      viewBox: `0 0 ${size.width} ${size.height}`, data: {grows: size.down ? "down" : "right"},
      role: "group", "aria-label": regard.say("tree.title"),
      tabindex: "-1", // Chromium would focus an SVG that has focus listeners
    }, shape("circle", {class: "origin", cx: all[0].x + 5, cy: all[0].y, r: 5}),
    drawn.flatMap((node) => edges(node, size.down)), [...groups.values()]);
    pane.replaceChildren(svg);
    regard.roving(svg, ".node");
  };

  // The output of a path, with the color of its line.
  const outcome = (tree, path, same) => make("li", {class: same ? "both" : path, data: {outcome: path}},
    make("i", {class: "path-line"}),
    make("span", {class: "label"}, regard.say(same ? "tree.both" : `tree.${path}Path`)),
    make("b", {dir: "auto", class: (tree[path] || "").length > LONG ? "long" : null}, tree[path] || regard.say("sign.empty")),
    tree.scores && Number.isFinite(tree.scores[path])
      ? make("span", {class: "note"}, regard.say("tree.score", {score: regard.number(tree.scores[path])})) : null);

  regard.pruned = (tree) => tree ? tree.nodes.filter((node) => node.status === "pruned") : [];

  regard.tree = (context) => {
    const {data: {tree}, state, bus} = context;
    const says = make("p", {class: "says", data: {says: "tree"}, "aria-live": "polite"}, regard.say("tree.hint"));
    const pane = regard.scroller(regard.say("tree.title"), null, {class: "scroll tree-pane", data: {tree: "pane"}});
    const count = regard.pruned(tree).length;
    let width = Infinity; // known once the pane is on the page
    const draw = () => render(context, pane, says, width - SCROLLBAR);
    const watcher = new ResizeObserver(() => {
      if (pane.offsetWidth === width) return;
      width = pane.offsetWidth;
      draw();
    });
    watcher.observe(pane);
    bus.on("end", () => watcher.disconnect());
    const box = make("input", {type: "checkbox", data: {pruned: "toggle"}, on: {change: () => {
      state.pruned = box.checked;
      draw();
    }}});
    box.checked = state.pruned;
    const same = tree.best === tree.greedy && tree.nodes.every((node) => !node.best === !node.greedy);
    draw();
    return [make("p", {class: "lead"}, regard.say("tree.lead", {beam: tree.beam})),
      make("ul", {class: "outcomes"}, outcome(tree, "best", same),
        same || typeof tree.greedy !== "string" ? null : outcome(tree, "greedy")),
      count ? make("label", {class: "check"}, box, make("span", {}, regard.say("tree.showPruned", {count}))) : null,
      pane, says].filter(Boolean);
  };
})();
