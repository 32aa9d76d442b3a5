"use strict";
// A large heat map with tokens on both axes, a sentence about the highlighted cell, and a table.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  const CJK = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+$/u;
  const SMALLEST = 17, LARGEST = 42, TALLEST = 32; // pixels of a cell
  const WIDTH = 640, HEIGHT = 560; // pixels: preferred maximum size of a map

  const sign = (text) => /^<.*>$/.test(text);

  // Orientation of column labels: horizontal, upright (CJK) or rotated.
  regard.labelOrientation = (tokens) => {
    const words = tokens.filter((text) => !sign(text));
    if (words.every((text) => [...text].length <= 2)) return "flat";
    const long = words.filter((text) => [...text].length > 1);
    return long.length && long.every((text) => CJK.test(text)) ? "upright" : "rotated";
  };

  const labels = (bus, axis, as, name) => {
    const group = make("div", {class: `map-${as}s`, role: "group", "aria-label": name},
      axis.tokens.map((text, index) => {
        const button = make("button", {
          type: "button", class: "map-label", title: regard.plain(text), data: {axis: axis.name, index},
          on: {click: () => { if (axis.name === "target") bus.choose(index); }},
        }, regard.token(text));
        bus.link(button, {axis: axis.name, index, as});
        return button;
      }));
    if (as === "column") group.classList.add(regard.labelOrientation(axis.tokens));
    return regard.roving(group, ".map-label");
  };

  // Indices of the largest values of a row, in descending order.
  regard.largest = (values, count) => [...values.keys()]
    .sort((one, other) => values[other] - values[one]).slice(0, count);

  // The highlighted index of an axis of a map, or null.
  regard.marked = (marks, axis, as) => {
    const mark = marks.find((one) => one.axis === axis && (!one.as || one.as === as));
    return mark ? mark.index : null;
  };

  // A token in a sentence, isolated from the direction of the surrounding text.
  const isolate = (text) => `\u2068${regard.plain(text)}\u2069`;

  const sentence = (rows, columns, matrix, row, column) => {
    const value = (row, column) => regard.number(regard.at(matrix, row, column));
    if (row !== null && column !== null) {
      return regard.say("map.cell", {row: isolate(rows.tokens[row]),
        column: isolate(columns.tokens[column]), value: value(row, column)});
    }
    if (row !== null) {
      const most = regard.largest(regard.rowOf(matrix, row), 3)
        .map((at) => `${isolate(columns.tokens[at])} ${value(row, at)}`);
      return regard.say("map.row", {row: isolate(rows.tokens[row]), most: most.join(regard.say("comma"))});
    }
    const down = Float32Array.from({length: matrix.rows}, (_, at) => regard.at(matrix, at, column));
    const most = regard.largest(down, 3)
      .map((at) => `${isolate(rows.tokens[at])} ${value(at, column)}`);
    return regard.say("map.column", {column: isolate(columns.tokens[column]), most: most.join(regard.say("comma"))});
  };

  // A sentence about the highlighted cell; a hint if nothing is highlighted.
  regard.saying = (bus, rows, columns, matrix) => {
    const hint = regard.say("map.hint");
    const line = make("p", {class: "says", data: {says: "map"}, "aria-live": "polite"}, hint);
    bus.on("mark", (marks) => {
      const row = regard.marked(marks, rows.name, "row");
      const column = regard.marked(marks, columns.name, "column");
      // If both axes have the same tokens, a single token highlights its row only.
      const both = rows.name === columns.name && marks.length === 1;
      const at = both && marks[0].as !== "column" ? null : column;
      const known = (row ?? 0) < matrix.rows && (at ?? 0) < matrix.columns;
      line.textContent = (row === null && at === null) || !known
        ? hint : sentence(rows, columns, matrix, row, at);
    });
    return line;
  };

  // All values of a map as a table, built when it is opened.
  regard.numbersTable = (rows, columns, matrix, caption) => {
    const cell = (tag, text, scope) => make(tag, {scope}, regard.token(text));
    const build = () => make("table", {class: "numbers"},
      make("caption", {class: "unseen"}, caption),
      make("thead", {}, make("tr", {}, make("td", {}),
        columns.tokens.map((text) => cell("th", text, "col")))),
      make("tbody", {}, rows.tokens.map((text, row) => make("tr", {}, cell("th", text, "row"),
        columns.tokens.map((_, column) =>
          make("td", {class: "number"}, regard.number(regard.at(matrix, row, column))))))));
    const pane = regard.scroller(caption, null);
    return make("details", {class: "as-table", data: {table: "map"}, on: {toggle: (event) => {
      if (event.target.open && !pane.firstChild) pane.append(build());
    }}}, make("summary", {}, regard.say("table.open")), pane);
  };

  // A canvas with diagonal lines in the cells that cannot be attended to.
  const hatching = ({rows, columns}, hidden) => {
    const size = 24; // pixels of a cell
    const canvas = make("canvas", {class: "hatching", "aria-hidden": "true"});
    canvas.width = columns * size;
    canvas.height = rows * size;
    const pen = canvas.getContext("2d");
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--muted").trim();
    pen.globalAlpha = 0.3;
    pen.lineWidth = 1.5;
    hidden.forEach((row, y) => [...row].forEach((one, x) => {
      if (one !== "1") return;
      for (const at of [size / 4, size * 3 / 4]) {
        pen.moveTo(x * size, y * size + at);
        pen.lineTo(x * size + at, y * size);
        pen.moveTo(x * size + at, (y + 1) * size);
        pen.lineTo((x + 1) * size, y * size + at);
      }
    }));
    pen.stroke();
    return canvas;
  };

  const cells = (bus, rows, columns, matrix, style) => {
    const canvas = make("canvas", {"aria-hidden": "true"});
    const across = make("div", {class: "mark-row", hidden: true});
    const down = make("div", {class: "mark-column", hidden: true});
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      const part = (at, size, count) => Math.min(count - 1, Math.max(0, Math.floor(at / size * count)));
      bus.mark([
        {axis: rows.name, index: part(event.clientY - box.top, box.height, matrix.rows), as: "row"},
        {axis: columns.name, index: part(event.clientX - box.left, box.width, matrix.columns), as: "column"},
      ]);
    };
    const element = make("div", {class: "map-cells", data: {cells: "map"}, on: {
      pointermove: point, pointerdown: point, pointerleave: bus.leave,
    }}, canvas, style && style.hidden && style.hidden.length ? hatching(matrix, style.hidden) : null,
    make("div", {class: "mesh"}), across, down);
    const mark = (marks) => {
      const row = regard.marked(marks, rows.name, "row");
      const column = regard.marked(marks, columns.name, "column");
      across.hidden = row === null;
      down.hidden = column === null;
      if (row !== null) across.style.setProperty("--at", row);
      if (column !== null) down.style.setProperty("--at", column);
    };
    return {element, mark, draw: () => regard.paint(canvas, matrix, style)};
  };

  // A heat map of {name, tokens} by {name, tokens}; it adapts to the available width.
  regard.map = (bus, name, rows, columns, matrix, style) => {
    const field = cells(bus, rows, columns, matrix, style);
    const body = make("div", {class: "map-body", style: {"--rows": matrix.rows, "--columns": matrix.columns}},
      make("div", {class: "map-corner"}),
      labels(bus, columns, "column", regard.say(`axis.${columns.name}`)),
      labels(bus, rows, "row", regard.say(`axis.${rows.name}`)),
      field.element);
    const pane = regard.scroller(name, body);
    const fit = () => {
      const labelWidth = body.querySelector(".map-rows").offsetWidth;
      const width = Math.floor((pane.clientWidth - labelWidth - 10) / matrix.columns);
      const across = Math.max(SMALLEST, Math.min(LARGEST, width, WIDTH / matrix.columns));
      const down = Math.max(SMALLEST, Math.min(TALLEST, across, HEIGHT / matrix.rows));
      body.style.setProperty("--across", `${Math.floor(across)}px`);
      body.style.setProperty("--down", `${Math.floor(down)}px`);
    };
    const watcher = new ResizeObserver(fit);
    watcher.observe(pane);
    bus.on("mark", field.mark);
    bus.on("theme", field.draw);
    bus.on("end", () => watcher.disconnect());
    field.draw();
    return make("div", {class: "map"}, pane, regard.saying(bus, rows, columns, matrix));
  };
})();
