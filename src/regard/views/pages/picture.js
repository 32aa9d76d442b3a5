"use strict";
// An image as the model reads it, what counts in it as colors over it, filters and feature maps.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  const ADDS = [208, 101, 28], LOWERS = [43, 95, 201]; // colors of positive and negative values
  const COVER = 0.9; // opacity of the largest value

  const bytes = new WeakMap();

  // Return the pixels as {shape: [height, width, channels], flat}; decoded once.
  const pixelsOf = ({pixels}) => {
    if (!bytes.has(pixels)) bytes.set(pixels, Uint8Array.from(atob(pixels.u8), (char) => char.charCodeAt(0)));
    return {shape: pixels.shape, flat: bytes.get(pixels)};
  };

  // Paint values (height, width, channels) of 1 to 4 channels; `level` maps a value to 0 to 255.
  const paintPixels = (canvas, [height, width, channels], flat, level = (value) => value) => {
    canvas.width = width;
    canvas.height = height;
    const image = new ImageData(width, height);
    for (let cell = 0; cell < width * height; cell += 1) {
      for (let part = 0; part < 3; part += 1) {
        image.data[cell * 4 + part] = level(flat[cell * channels + (channels > 2 ? part : 0)]);
      }
      image.data[cell * 4 + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  const largest = (flat) => flat.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;

  // Paint a matrix of signed values, opaque where they are large.
  const paintOver = (canvas, matrix) => {
    canvas.width = matrix.columns;
    canvas.height = matrix.rows;
    const image = new ImageData(matrix.columns, matrix.rows);
    const top = largest(matrix.flat);
    matrix.flat.forEach((value, cell) => {
      image.data.set(value < 0 ? LOWERS : ADDS, cell * 4);
      image.data[cell * 4 + 3] = 255 * COVER * Math.sqrt(Math.abs(value) / top);
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  const isOverImage = ({rows, columns}) => columns === "source" && ["source", "target", "one"].includes(rows);

  // Attention of each layer over the positions of the image, with a name.
  const attentionOf = (data) => (data.picture.grid ? data.attention.filter(isOverImage) : []);

  // The weights of one query as the cells of the grid.
  const attentionCells = ({picture}, entry, head, row) => {
    const count = regard.numbers(entry.heads).shape[0];
    const matrix = head === "mean"
      ? regard.mean(Array.from({length: count}, (_, index) => regard.matrix(entry.heads, index)))
      : regard.matrix(entry.heads, head);
    const {rows, columns, before} = picture.grid;
    return {rows, columns, flat: regard.rowOf(matrix, row).subarray(before)};
  };

  const most = (matrix) => {
    const at = matrix.flat.reduce((best, value, cell) =>
      (Math.abs(value) > Math.abs(matrix.flat[best]) ? cell : best), 0);
    return {row: Math.floor(at / matrix.columns) + 1, column: at % matrix.columns + 1};
  };

  const picker = (name, hook, options, chosen, react) => {
    const select = make("select", {data: {[hook]: ""}, on: {change: () => react(select.value)}},
      options.map(([value, text]) => make("option", {value, selected: value === chosen}, text)));
    return make("label", {class: "control"}, `${name} `, select);
  };

  regard.picker = picker;

  const layerName = (entry) => regard.say("picture.layer", {
    part: regard.say(`part.${entry.part}`), layer: entry.layer,
  });

  // The large view: image, colors over it, and the controls that choose them.
  const overlays = (context) => {
    const {data, state, axes, bus} = context;
    const {picture} = data;
    const layers = attentionOf(data);
    const choices = ["saliency", ...(picture.class_map ? ["class"] : []), ...(layers.length ? ["attention"] : [])];
    const shown = state.picture ||= {
      view: layers.some(({part}) => part === "cross") ? "attention" : choices.at(-1), layer: layers.length - 1, head: "mean", row: 0,
    };
    const under = make("canvas", {"aria-hidden": "true"}), over = make("canvas", {"aria-hidden": "true"});
    const frame = make("div", {class: "picture-frame", role: "img", data: {picture: "frame"}}, under, over);
    const says = make("p", {class: "says", "aria-live": "polite", data: {says: "picture"}});
    const controls = make("div", {class: "picture-controls"});
    const {shape, flat} = pixelsOf(picture);
    paintPixels(under, shape, flat);
    frame.style.setProperty("--ratio", shape[1] / shape[0]);

    const valuesOf = () => {
      const part = (values) => regard.matrix(values, Math.min(state.step, regard.numbers(values).shape[0] - 1));
      if (shown.view === "none") return null;
      if (shown.view === "saliency") return part(picture.saliency);
      if (shown.view === "class") return part(picture.class_map.values);
      const entry = layers[shown.layer];
      const row = {target: state.step, one: 0}[entry.rows] ?? shown.row;
      return attentionCells(data, entry, shown.head, Math.min(row, regard.numbers(entry.heads).shape[1] - 1));
    };
    const paint = () => {
      const matrix = valuesOf();
      over.hidden = !matrix;
      const output = data.steps[state.step]?.token ?? "";
      const name = regard.say(`picture.${shown.view}`);
      if (matrix) paintOver(over, matrix);
      const text = matrix ? regard.say("picture.most", {name, output: regard.plain(output), ...most(matrix)}) : name;
      frame.setAttribute("aria-label", text);
      says.textContent = text;
    };
    const drawControls = () => {
      const parts = [];
      if (shown.view === "attention") {
        const entry = layers[shown.layer];
        parts.push(picker(regard.say("gates.layer"), "pictureLayer",
          layers.map((one, index) => [String(index), layerName(one)]), String(shown.layer),
          (value) => { shown.layer = +value; shown.head = "mean"; update(); }));
        const count = regard.numbers(entry.heads).shape[0];
        if (count > 1) parts.push(picker(regard.say("picture.head"), "pictureHead",
          [["mean", regard.say("picture.mean")], ...Array.from({length: count}, (_, head) =>
            [String(head), regard.say("head.number", {head})])], String(shown.head),
          (value) => { shown.head = value === "mean" ? value : +value; update(); }));
        if (entry.rows === "source") parts.push(picker(regard.say("picture.query"), "pictureQuery",
          axes.source.map((name, index) => [String(index), name]), String(shown.row),
          (value) => { shown.row = +value; update(); }));
      }
      controls.replaceChildren(...parts);
    };
    const update = () => { drawControls(); paint(); };
    // A click on the image selects the cell whose attention is shown.
    frame.addEventListener("click", (event) => {
      if (shown.view !== "attention" || layers[shown.layer].rows !== "source") return;
      const box = frame.getBoundingClientRect(), {rows, columns, before} = picture.grid;
      const row = Math.floor((event.clientY - box.top) / box.height * rows);
      const column = Math.floor((event.clientX - box.left) / box.width * columns);
      shown.row = before + Math.min(rows - 1, Math.max(0, row)) * columns + Math.min(columns - 1, Math.max(0, column));
      update();
    });
    bus.on("choose", paint);
    update();
    return make("div", {class: "picture"}, frame, make("div", {class: "picture-side"},
      regard.segments(regard.say("view"), "overlay",
        ["none", ...choices].map((one) => [one, regard.say(`picture.${one}`)]), shown.view,
        (value) => { shown.view = value; update(); }),
      controls, says,
      make("p", {class: "note"}, regard.say("picture.key"))));
  };

  // Small canvases side by side. Each has a title; a list item describes it.
  const gallery = (hook, tiles) => make("ul", {class: "tiles", data: {tiles: hook}},
    tiles.map(([title, paint]) => {
      const canvas = make("canvas", {role: "img", "aria-label": title, title});
      paint(canvas);
      return make("li", {}, canvas);
    }));

  const filters = ({name, total, values}) => {
    const {shape: [count, height, width, channels], flat} = regard.numbers(values);
    const top = largest(flat), size = height * width * channels;
    const tiles = Array.from({length: count}, (_, index) => [
      regard.say("picture.filter", {index}),
      (canvas) => paintPixels(canvas, [height, width, channels], flat.subarray(index * size, (index + 1) * size),
        (value) => 127.5 * (1 + value / top)),
    ]);
    return make("figure", {class: "picture-tiles"},
      make("h3", {}, regard.say("picture.filters"), " ", make("code", {}, name)),
      make("p", {class: "note"}, regard.say("picture.filtersAbout", {total, shown: count, size: `${height} \u00d7 ${width} \u00d7 ${channels}`})),
      gallery("filters", tiles));
  };

  // A small copy of the image that is hidden until a cell of a map is clicked, whose receptive field it outlines.
  const fieldView = (picture, {field, name}, columns) => {
    const {shape, flat} = pixelsOf(picture);
    const under = make("canvas", {"aria-hidden": "true"}), outline = make("div", {class: "picture-field"});
    const says = make("p", {class: "says", "aria-live": "polite", data: {says: "field"}});
    const frame = make("div", {class: "picture-frame small"}, under, outline);
    const element = make("div", {hidden: true, class: "picture", data: {field: "image"}}, frame, says);
    paintPixels(under, shape, flat);
    frame.style.setProperty("--ratio", shape[1] / shape[0]);
    const show = (cell) => {
      const at = [Math.floor(cell / columns), cell % columns];
      const [top, left] = [0, 1].map((axis) => Math.max(0, field.start[axis] + at[axis] * field.jump[axis]));
      const [bottom, right] = [0, 1].map((axis) =>
        Math.min(shape[axis], field.start[axis] + at[axis] * field.jump[axis] + field.size[axis]));
      const part = {top: top / shape[0], left: left / shape[1], height: (bottom - top) / shape[0], width: (right - left) / shape[1]};
      for (const [side, value] of Object.entries(part)) outline.style.setProperty(side, `${100 * value}%`);
      says.textContent = regard.say("picture.field", {
        name, row: at[0] + 1, column: at[1] + 1, top: top + 1, bottom, left: left + 1, right,
      });
      element.hidden = false;
    };
    return {element, show};
  };

  const maps = (layer, index, context) => {
    const {shape: [, height, width]} = regard.numbers(layer.values);
    const view = layer.field && fieldView(context.data.picture, layer, width);
    const click = (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      const cell = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
      view.show(cell((event.clientY - box.top) / box.height, height) * width + cell((event.clientX - box.left) / box.width, width));
    };
    const tiles = layer.channels.map((channel, at) => {
      const matrix = regard.matrix(layer.values, at);
      return [regard.say("picture.channel", {channel}), (canvas) => {
        const lowest = matrix.flat.reduce((low, value) => Math.min(low, value), 0);
        const style = lowest < 0 ? {colors: "both", scale: "both"} : {colors: "cool", scale: "even"};
        const draw = () => regard.paint(canvas, matrix, {...style, top: largest(matrix.flat)});
        context.bus.on("theme", draw);
        draw();
        if (view) canvas.addEventListener("click", click);
      }];
    });
    return make("figure", {class: "picture-tiles", data: {maps: index}},
      make("h3", {}, regard.say("picture.mapsOf", {size: `${height} \u00d7 ${width} \u00d7 ${layer.total}`}), " ", make("code", {}, layer.name)),
      view && index === 0 ? make("p", {class: "note"}, regard.say("picture.fieldHint")) : null,
      gallery("maps", tiles), view && view.element);
  };

  regard.picture = (context) => {
    const {picture} = context.data;
    return [overlays(context),
      picture.filters && filters(picture.filters),
      ...picture.maps.map((layer, index) => maps(layer, index, context))].filter(Boolean);
  };
})();
