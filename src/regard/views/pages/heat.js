"use strict";
// Values as colors: unpacking arrays, color ramps and canvases.
(() => {
  const regard = window.regard = window.regard || {};
  const cache = new WeakMap();

  const unpack = (packed) => {
    const text = atob(packed.u16);
    const size = text.length / 2;
    const low = packed.min || 0;
    const unit = (packed.max - low) / 65535;
    const flat = new Float32Array(size);
    for (let index = 0; index < size; index += 1) {
      flat[index] = low
        + (text.charCodeAt(2 * index) + 256 * text.charCodeAt(2 * index + 1)) * unit;
    }
    return {shape: packed.shape, flat};
  };

  // Return nested lists or a packed array as {shape, flat}; unpacked once, on first use.
  regard.numbers = (value) => {
    if (!cache.has(value)) {
      const shape = [];
      if (!value.u16) for (let at = value; Array.isArray(at); at = at[0]) shape.push(at.length);
      cache.set(value, value.u16 ? unpack(value)
        : {shape, flat: Float32Array.from(value.flat(Infinity))});
    }
    return cache.get(value);
  };

  // Return a matrix {rows, columns, flat}; `index` is the leading index of a 3-d array.
  regard.matrix = (value, index = 0) => {
    const {shape, flat} = regard.numbers(value);
    const [rows, columns] = shape.slice(-2);
    const size = rows * columns;
    return {rows, columns, flat: flat.subarray(index * size, (index + 1) * size)};
  };

  regard.mean = (matrices) => {
    const {rows, columns} = matrices[0];
    const flat = new Float32Array(rows * columns);
    for (const matrix of matrices) {
      for (let index = 0; index < flat.length; index += 1) {
        flat[index] += matrix.flat[index] / matrices.length;
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
    signed: ["--warm-4", "--warm-3", "--warm-2", "--warm-1", "--heat-0",
      "--cool-1", "--cool-2", "--cool-3", "--cool-4"],
  };
  let ramps = {};
  document.addEventListener("regard:theme", () => { ramps = {}; });

  const color = (text) => [1, 3, 5].map((index) => parseInt(text.slice(index, index + 2), 16));

  // Return 256 colors as pixels, interpolated between the stops of the style sheet.
  const ramp = (name) => {
    if (ramps[name]) return ramps[name];
    const style = getComputedStyle(document.documentElement);
    const stops = RAMPS[name].map((key) => color(style.getPropertyValue(key).trim()));
    const bytes = new Uint8ClampedArray(256 * 4).fill(255);
    for (let index = 0; index < 256; index += 1) {
      const at = index / 255 * (stops.length - 1);
      const low = Math.min(Math.floor(at), stops.length - 2);
      for (let part = 0; part < 3; part += 1) {
        bytes[index * 4 + part] = stops[low][part] + (at - low) * (stops[low + 1][part] - stops[low][part]);
      }
    }
    ramps[name] = new Uint32Array(bytes.buffer);
    return ramps[name];
  };

  // Position of a value on its ramp, 0 to 1. The square root makes small weights visible.
  const SCALES = {
    root: (value, top) => Math.sqrt(Math.max(value, 0) / top),
    even: (value, top) => value / top,
    both: (value, top) => (value / top + 1) / 2,
  };

  // Paint one pixel per cell; the style sheet scales it up without smoothing.
  regard.paint = (canvas, matrix, {colors = "cool", scale = "root", top = 1} = {}) => {
    const {rows, columns, flat} = matrix;
    canvas.width = columns;
    canvas.height = rows;
    if (!rows || !columns) return;
    const shades = ramp(colors);
    const position = SCALES[scale];
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let cell = 0; cell < flat.length; cell += 1) {
      pixels[cell] = shades[Math.min(255, Math.max(0, Math.round(position(flat[cell], top) * 255)))];
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  // Return the legend of a ramp: colors and tick values.
  regard.legend = (title, marks, {colors = "cool", scale = "root", top = 1} = {}) => {
    const canvas = regard.make("canvas", {"aria-hidden": "true"});
    const flat = Float32Array.from({length: 120}, (_, index) => {
      const part = index / 119;
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
