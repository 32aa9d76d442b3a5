"use strict";
// The neighborhood of nodes in a graph. Colors are predicted labels, sizes are saliency, and the
// width of an edge is its attention.
(() => {
  const regard = window.regard = window.regard || {};
  const {make, shape} = regard;
  const COLORS = ["#332288", "#cc6677", "#117733", "#3d9ec7", "#882255", "#b8962e", "#44aa99", "#aa4499"];
  const WIDTH = 720, HEIGHT = 520, MARGIN = 44;
  const MAX_NAMED = 60; // nodes with a name
  const THIN = 0.6, THICK = 7, SMALL = 5, LARGE = 14; // widths of edges and radii of nodes

  // Positions in the drawing; both axes have one scale.
  const placed = (positions) => {
    const [xs, ys] = [0, 1].map((axis) => positions.map((one) => one[axis]));
    const [left, low] = [Math.min(...xs), Math.min(...ys)];
    const span = Math.max((Math.max(...xs) - left) / (WIDTH - 2 * MARGIN), (Math.max(...ys) - low) / (HEIGHT - 2 * MARGIN)) || 1;
    const [wide, high] = [(Math.max(...xs) - left) / span, (Math.max(...ys) - low) / span];
    return positions.map(([x, y]) => [(WIDTH - wide) / 2 + (x - left) / span, (HEIGHT + high) / 2 - (y - low) / span]);
  };

  const encoderMaps = (data) => data.attention.filter(({part, rows, columns}) =>
    part === "encoder" && rows === "source" && columns === "source");

  // The attention of each edge, in its stronger direction.
  const edgeWeights = (edges, entry, head) => {
    const count = regard.numbers(entry.heads).shape[0];
    const matrix = head === "mean"
      ? regard.mean(Array.from({length: count}, (_, index) => regard.matrix(entry.heads, index)))
      : regard.matrix(entry.heads, +head);
    return edges.map(([a, b]) => Math.max(regard.at(matrix, a, b), regard.at(matrix, b, a)));
  };

  const drawEdges = ({edges, nodes, relations}, points, weights) => {
    const top = weights ? weights.reduce((most, value) => Math.max(most, value), 0) || 1 : 1;
    return edges.map(([a, b], index) => shape("line", {
      class: "graph-edge", x1: points[a][0], y1: points[a][1], x2: points[b][0], y2: points[b][1],
      "stroke-width": weights ? THIN + (THICK - THIN) * weights[index] / top : 1.2,
    }, shape("title", {}, [`${nodes[a]} \u2013 ${nodes[b]}`, relations[index],
      weights && regard.number(weights[index])].filter(Boolean).join(", "))));
  };

  const drawNodes = ({graph, step, saliency, points, labels, bus}) => graph.nodes.map((name, index) => {
    const radius = SMALL + (LARGE - SMALL) * (saliency ? saliency[index] : 0.3);
    const node = shape("g", {class: index < graph.explained ? "graph-node explained" : "graph-node", data: {axis: "source", index}},
      shape("circle", {cx: points[index][0], cy: points[index][1], r: radius,
        fill: COLORS[labels.indexOf(graph.labels[index]) % COLORS.length],
        class: graph.explained > 1 && index === step ? "selected" : null}),
      index < MAX_NAMED ? shape("text", {x: points[index][0], y: points[index][1] - radius - 4}, name) : null,
      shape("title", {}, `${name}: ${graph.labels[index]}`));
    bus.link(node, {axis: "source", index});
    return node;
  });

  // Which layer and head the edges show. Layers may have different numbers of heads.
  const pickers = (layers, shown, update) => {
    const heads = regard.numbers(layers[shown.layer].heads).shape[0];
    const named = Array.from({length: heads}, (_, head) => [String(head), regard.say("head.number", {head})]);
    return [
      regard.picker(regard.say("gates.layer"), "graphLayer", layers.map(({layer}, index) => [String(index), String(layer)]),
        String(shown.layer), (value) => { shown.layer = +value; shown.head = "mean"; update(); }),
      ...(heads > 1 ? [regard.picker(regard.say("picture.head"), "graphHead", [["mean", regard.say("picture.mean")], ...named],
        shown.head, (value) => { shown.head = value; update(); })] : []),
    ];
  };

  regard.graph = ({data, state, bus}) => {
    const {graph} = data, layers = encoderMaps(data), points = placed(graph.positions);
    const shown = state.graph ||= {layer: 0, head: "mean"};
    const labels = [...new Set(graph.labels)].sort();
    const counts = {nodes: graph.nodes.length, edges: graph.edges.length};
    const svg = shape("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": regard.say("graph.about", counts), data: {graph: "drawing"}});
    const draw = () => {
      const weights = layers.length ? edgeWeights(graph.edges, layers[shown.layer], shown.head) : null;
      const saliency = data.saliency ? regard.saliencyOfStep(data, "source", state.step) : null;
      svg.replaceChildren(...drawEdges(graph, points, weights),
        ...drawNodes({graph, step: state.step, saliency, points, labels, bus}));
    };
    const controls = layers.length ? make("div", {class: "picture-controls"}) : null;
    const update = () => {
      if (controls) controls.replaceChildren(...pickers(layers, shown, update));
      draw();
    };
    bus.on("choose", draw);
    update();
    return [controls, svg,
      make("ul", {class: "graph-labels"}, labels.map((label, index) => make("li", {},
        make("span", {class: "graph-color", style: {background: COLORS[index % COLORS.length]}}), label))),
      make("p", {class: "note"}, regard.say("graph.about", counts), " ", regard.say(layers.length ? "graph.key" : "graph.keyPlain"))].filter(Boolean);
  };
})();
