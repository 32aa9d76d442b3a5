"use strict";
// Attention as lines: queries on one side, attended tokens on the other.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  const STEP = 26; // pixels from one token to the next

  const side = (bus, axis, as, name) => {
    const group = make("div", {class: `lines-side ${as}`, role: "group", "aria-label": name},
      axis.tokens.map((text, index) => {
        const button = make("button", {
          type: "button", class: "line-label", title: regard.plain(text), data: {axis: axis.name, index},
          on: {click: () => { if (axis.name === "target") bus.choose(index); }},
        }, regard.token(text));
        bus.link(button, {axis: axis.name, index, as});
        return button;
      }));
    return regard.roving(group, ".line-label");
  };

  const draw = (canvas, matrix, marks) => {
    const {rows, columns} = matrix;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    const dots = window.devicePixelRatio || 1;
    if (!width) return;
    canvas.width = width * dots;
    canvas.height = height * dots;
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    const style = getComputedStyle(canvas);
    const [highlighted, normal] = ["--second", "--first"].map((name) => style.getPropertyValue(name));
    const any = marks.row !== null || marks.column !== null;
    const lines = [];
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const weight = regard.at(matrix, row, column);
        const lit = any && (marks.row === null || marks.row === row)
          && (marks.column === null || marks.column === column);
        if (weight > 0.004 || lit) lines.push([weight, row, column, lit]);
      }
    }
    // Strong lines last, so that they are on top.
    lines.sort((one, other) => one[3] - other[3] || one[0] - other[0]);
    for (const [weight, row, column, lit] of lines) {
      const from = (row + 0.5) * STEP, to = (column + 0.5) * STEP;
      pen.strokeStyle = lit ? highlighted : normal;
      pen.globalAlpha = Math.pow(weight, 0.8) * (any && !lit ? 0.12 : 1);
      pen.lineWidth = 0.6 + 3.4 * weight;
      pen.beginPath();
      pen.moveTo(0, from);
      pen.bezierCurveTo(width * 0.4, from, width * 0.6, to, width, to);
      pen.stroke();
    }
  };

  // Render one map as lines; arguments as for `regard.map`.
  regard.lines = (bus, rows, columns, matrix) => {
    const canvas = make("canvas", {"aria-hidden": "true"});
    const tall = Math.max(matrix.rows, matrix.columns) * STEP;
    const element = make("div", {class: "lines", style: {"--tall": `${tall}px`, "--step": `${STEP}px`}},
      side(bus, rows, "row", regard.say(`axis.${rows.name}`)), canvas,
      side(bus, columns, "column", regard.say(`axis.${columns.name}`)));
    let marks = {row: null, column: null};
    const redraw = () => draw(canvas, matrix, marks);
    bus.on("mark", (next) => {
      const own = rows.name === columns.name && next.length === 1 && next[0].as !== "column";
      marks = {
        row: regard.marked(next, rows.name, "row"),
        column: own ? null : regard.marked(next, columns.name, "column"),
      };
      redraw();
    });
    bus.on("theme", redraw);
    const watcher = new ResizeObserver(redraw);
    watcher.observe(canvas);
    bus.on("end", () => watcher.disconnect());
    return make("div", {class: "map"}, element, regard.saying(bus, rows, columns, matrix));
  };
})();
