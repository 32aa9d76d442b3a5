"use strict";
// The gates of recurrent layers over time: the mean as a line, all units as colors.
(() => {
  const regard = window.regard = window.regard || {};
  const {make, shape} = regard;
  const ORDER = ["input", "forget", "cell", "output", "reset", "update", "new", "hidden"];
  const SIGNED = ["cell", "new", "hidden"];
  const MAX_LINES = 132; // of a strip

  const groupsOf = (data) => {
    const groups = new Map();
    for (const gate of data.gates) {
      const key = [gate.name, gate.direction].filter(Boolean).join(" ");
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(gate);
    }
    const rank = (gate) => ORDER.indexOf(gate.gate);
    for (const gates of groups.values()) gates.sort((one, other) => rank(one) - rank(other));
    return groups;
  };

  const nameOf = ({part, layer, direction}) => regard.say("gates.name", {
    part: regard.say(`part.${part}`), layer,
    direction: direction ? regard.say("comma") + regard.say(`gates.${direction}`) : "",
  });

  // How many units share a line of the strip.
  const unitsPerLine = (units) => Math.ceil(regard.numbers(units).shape[1] / MAX_LINES);

  // Columns are time, rows are units, sorted by mean.
  const strip = (units) => {
    const matrix = regard.matrix(units); // (T, D)
    const sums = Float32Array.from({length: matrix.columns}, (_, unit) => {
      let sum = 0;
      for (let time = 0; time < matrix.rows; time += 1) sum += regard.at(matrix, time, unit);
      return sum;
    });
    const order = regard.largest(sums, sums.length);
    const group = unitsPerLine(units);
    const lines = Math.ceil(order.length / group);
    const flat = new Float32Array(lines * matrix.rows);
    order.forEach((unit, index) => {
      const line = Math.floor(index / group);
      const own = Math.min(group, order.length - line * group);
      for (let time = 0; time < matrix.rows; time += 1) {
        flat[line * matrix.rows + time] += regard.at(matrix, time, unit) / own;
      }
    });
    return {rows: lines, columns: matrix.rows, flat};
  };

  // Gates are in [0, 1]; states are signed, and the LSTM cell is unbounded.
  const colorScale = (gate) => {
    if (!SIGNED.includes(gate.gate)) return {colors: "cool", scale: "even", top: 1};
    const known = gate.units.u16 || gate.units.length ? regard.numbers(gate.units).flat : gate.mean;
    const most = known.reduce((so, value) => Math.max(so, Math.abs(value)), 1);
    return {colors: "both", scale: "both", top: Math.ceil(most)};
  };

  const line = (mean, {scale, top}) => {
    const signed = scale === "both";
    const y = (value) => signed ? 50 - value / top * 48 : 98 - value * 96;
    const points = mean.map((value, time) => `${time + 0.5},${y(value).toFixed(2)}`);
    const rule = (value) => shape("path", {class: "grid", d: `M0 ${y(value)}H${mean.length}`});
    return shape("svg", {viewBox: `0 0 ${mean.length} 100`, preserveAspectRatio: "none", "aria-hidden": "true"},
      (signed ? [-top, 0, top] : [0, 0.5, 1]).map(rule), shape("polyline", {class: "line", points: points.join(" ")}),
      mean.length === 1 ? shape("path", {class: "line", d: `M0 ${y(mean[0])}H1`}) : null);
  };

  const labels = (axis, tokens) => make("div", {class: `gate-names ${regard.labelOrientation(tokens)}`},
    tokens.map((text, index) => make("span", {class: "map-label", data: {axis, index}}, regard.token(text))));

  // All units as colors; null if only the mean is known.
  const colors = (bus, gate, style) => {
    if (!gate.units.u16 && !gate.units.length) return null;
    const canvas = make("canvas", {"aria-hidden": "true"});
    const draw = () => regard.paint(canvas, strip(gate.units), style);
    canvas.style.setProperty("--units", regard.numbers(gate.units).shape[1]);
    bus.on("theme", draw);
    draw();
    return canvas;
  };

  // The explanation of a gate, and how many units share a line.
  const meaning = (gate, canvas) => {
    const group = canvas ? unitsPerLine(gate.units) : 1;
    const more = group > 1 ? regard.say("comma") + regard.say("gates.together", {count: group}) : "";
    return make("p", {class: "note"}, regard.say(`gate.${gate.gate}.why`) + more);
  };

  const figure = (context, bus, gate) => {
    const tokens = context.axes[gate.rows];
    const style = colorScale(gate);
    const average = gate.mean.reduce((sum, one) => sum + one, 0) / gate.mean.length;
    const rest = regard.say("gates.average", {value: regard.number(average, 2)});
    const value = make("span", {class: "note"}, rest);
    const down = make("div", {class: "mark-column", hidden: true});
    const canvas = colors(bus, gate, style);
    const point = (event) => {
      const box = plot.getBoundingClientRect();
      const index = Math.floor((event.clientX - box.left) / box.width * tokens.length);
      bus.mark([{axis: gate.rows, index: Math.max(0, Math.min(tokens.length - 1, index))}]);
    };
    const plot = make("div", {
      class: "gate-plot", on: {pointermove: point, pointerdown: point, pointerleave: bus.leave},
    },
      make("div", {class: "gate-line"}, line(gate.mean, style), make("span", {class: "high"}, String(style.top)),
        make("span", {class: "low"}, style.scale === "both" ? `\u2212${style.top}` : "0")), canvas, down);
    bus.on("mark", (marks) => {
      const index = regard.marked(marks, gate.rows, "row") ?? regard.marked(marks, gate.rows, "column");
      const known = index !== null && index in gate.mean;
      down.hidden = !known;
      down.style.setProperty("--at", index);
      value.textContent = known ? `${regard.plain(tokens[index])}  ${regard.number(gate.mean[index], 2)}` : rest;
    });
    const name = regard.say(`gate.${gate.gate}`);
    return make("figure", {class: "gate", data: {gate: gate.gate}},
      make("figcaption", {}, make("span", {}, name), value), meaning(gate, canvas),
      regard.scroller(name, make("div", {class: "gate-body", style: {"--columns": tokens.length}},
        plot, labels(gate.rows, tokens))));
  };

  const table = (context, gates) => {
    const tokens = context.axes[gates[0].rows];
    const flat = Float32Array.from(tokens.flatMap((_, time) => gates.map((gate) => gate.mean[time])));
    return regard.numbersTable({tokens}, {tokens: gates.map((gate) => regard.say(`gate.${gate.gate}`))},
      {rows: tokens.length, columns: gates.length, flat}, regard.say("gates.table"));
  };

  // One legend per color scale, with the names of its gates.
  const legends = (gates) => {
    const styles = new Map();
    for (const gate of gates) {
      const style = colorScale(gate);
      const key = style.scale + style.top;
      if (!styles.has(key)) styles.set(key, {style, names: []});
      styles.get(key).names.push(regard.say(`gate.${gate.gate}`));
    }
    return [...styles.values()].map(({style, names}) => regard.legend(names.join(regard.say("comma")),
      style.scale === "both" ? [-style.top, 0, style.top] : [0, 0.5, 1], style));
  };

  regard.gates = (context) => {
    const {data, state} = context;
    const groups = groupsOf(data);
    if (!groups.has(state.gates)) state.gates = [...groups.keys()][0];
    const pane = make("div", {});
    const show = () => {
      const bus = context.bus.group("gates");
      bus.clear();
      const gates = groups.get(state.gates);
      const keys = legends(gates);
      keys.forEach((key) => bus.on("theme", key.draw));
      pane.replaceChildren(make("div", {class: "gates"}, gates.map((gate) => figure(context, bus, gate))),
        make("div", {class: "gate-keys"}, keys.map((key) => key.element)), table(context, gates));
    };
    const id = regard.fresh("gates");
    const change = () => { state.gates = select.value; show(); };
    const select = make("select", {id, data: {gates: "layer"}, on: {change}},
      [...groups].map(([key, gates]) => make("option", {value: key}, nameOf(gates[0]))));
    select.value = state.gates;
    show();
    return [make("p", {class: "lead"}, regard.say("gates.lead")),
      groups.size > 1
        ? make("div", {class: "control"}, make("label", {for: id, class: "label"}, regard.say("gates.layer")), select)
        : make("h3", {}, nameOf(groups.get(state.gates)[0])), pane];
  };
})();
