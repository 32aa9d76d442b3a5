"use strict";
// Numbers as colors: the packed arrays of the data, the color ramps, and canvases of cells.
(() => {
  const regard = window.regard = window.regard || {};
  const kept = new WeakMap();

  const unpack = (packed) => {
    const text = atob(packed.u16);
    const size = text.length / 2;
    const low = packed.min || 0;
    const unit = (packed.max - low) / 65535;
    const flat = new Float32Array(size);
    for (let place = 0; place < size; place += 1) {
      flat[place] = low
        + (text.charCodeAt(2 * place) + 256 * text.charCodeAt(2 * place + 1)) * unit;
    }
    return {shape: packed.shape, flat};
  };

  // Nested lists or a packed array as {shape, flat}; unpacked once, when first asked for.
  regard.numbers = (value) => {
    if (!kept.has(value)) {
      const shape = [];
      if (!value.u16) for (let at = value; Array.isArray(at); at = at[0]) shape.push(at.length);
      kept.set(value, value.u16 ? unpack(value)
        : {shape, flat: Float32Array.from(value.flat(Infinity))});
    }
    return kept.get(value);
  };

  // A matrix {rows, columns, flat}: `place` is the leading index of an array of three axes.
  regard.matrix = (value, place = 0) => {
    const {shape, flat} = regard.numbers(value);
    const [rows, columns] = shape.slice(-2);
    const size = rows * columns;
    return {rows, columns, flat: flat.subarray(place * size, (place + 1) * size)};
  };

  regard.mean = (matrices) => {
    const {rows, columns} = matrices[0];
    const flat = new Float32Array(rows * columns);
    for (const matrix of matrices) {
      for (let place = 0; place < flat.length; place += 1) {
        flat[place] += matrix.flat[place] / matrices.length;
      }
    }
    return {rows, columns, flat};
  };

  regard.at = (matrix, row, column) => matrix.flat[row * matrix.columns + column];
  regard.rowOf = (matrix, row) =>
    matrix.flat.subarray(row * matrix.columns, (row + 1) * matrix.columns);

  const RAMPS = {
    cool: ["--heat-0", "--cool-1", "--cool-2", "--cool-3", "--cool-4"],
    warm: ["--heat-0", "--warm-1", "--warm-2", "--warm-3", "--warm-4"],
    both: ["--cool-4", "--cool-3", "--cool-2", "--cool-1", "--heat-0",
      "--warm-1", "--warm-2", "--warm-3", "--warm-4"],
  };
  let ramps = {};
  document.addEventListener("regard:theme", () => { ramps = {}; });

  const color = (text) => [1, 3, 5].map((place) => parseInt(text.slice(place, place + 2), 16));

  // 256 colors as pixels, between the stops of the style sheet.
  const ramp = (name) => {
    if (ramps[name]) return ramps[name];
    const style = getComputedStyle(document.documentElement);
    const stops = RAMPS[name].map((key) => color(style.getPropertyValue(key).trim()));
    const bytes = new Uint8ClampedArray(256 * 4).fill(255);
    for (let place = 0; place < 256; place += 1) {
      const at = place / 255 * (stops.length - 1);
      const low = Math.min(Math.floor(at), stops.length - 2);
      for (let part = 0; part < 3; part += 1) {
        bytes[place * 4 + part] = stops[low][part] + (at - low) * (stops[low + 1][part] - stops[low][part]);
      }
    }
    ramps[name] = new Uint32Array(bytes.buffer);
    return ramps[name];
  };

  // Where a value lies on its ramp, 0 to 1. The square root lets weak weights be seen.
  const SCALES = {
    root: (value, top) => Math.sqrt(Math.max(value, 0) / top),
    even: (value, top) => value / top,
    both: (value, top) => (value / top + 1) / 2,
  };

  // One pixel a cell; the style sheet makes it large, with hard edges.
  regard.paint = (canvas, matrix, {colors = "cool", scale = "root", top = 1} = {}) => {
    const {rows, columns, flat} = matrix;
    canvas.width = columns;
    canvas.height = rows;
    if (!rows || !columns) return;
    const shades = ramp(colors);
    const place = SCALES[scale];
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let cell = 0; cell < flat.length; cell += 1) {
      pixels[cell] = shades[Math.min(255, Math.max(0, Math.round(place(flat[cell], top) * 255)))];
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  // The key of a ramp: the colors, with the values that they stand for.
  regard.legend = (title, marks, {colors = "cool", scale = "root", top = 1} = {}) => {
    const canvas = regard.make("canvas", {"aria-hidden": "true"});
    const flat = Float32Array.from({length: 120}, (_, place) => {
      const part = place / 119;
      if (scale === "root") return part * part * top;
      return scale === "both" ? (part * 2 - 1) * top : part * top;
    });
    const draw = () => regard.paint(canvas, {rows: 1, columns: 120, flat}, {colors, scale, top});
    draw();
    const ticks = marks.map((value) => regard.make("span", {
      style: {left: `${SCALES[scale](value, top) * 100}%`},
    }, String(+value.toPrecision(3)).replace("-", "\u2212")));
    const element = regard.make("div", {class: "key"}, regard.make("span", {}, title),
      regard.make("div", {class: "key-ramp"}, canvas, regard.make("div", {class: "key-ticks"}, ticks)));
    return {element, draw};
  };
})();
