"use strict";
// Which symbols an answer depends on: the size of the gradient, as a share of its row.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;

  const entries = (data) => data.saliency
    ? [data.saliency, data.saliency.before || data.before].filter(Boolean) : [];

  const shared = (values) => {
    const matrix = regard.matrix(values);
    const flat = new Float32Array(matrix.flat.length);
    for (let row = 0; row < matrix.rows; row += 1) {
      const own = regard.rowOf(matrix, row);
      const sum = own.reduce((total, value) => total + value, 0) || 1;
      own.forEach((value, column) => { flat[row * matrix.columns + column] = value / sum; });
    }
    return {rows: matrix.rows, columns: matrix.columns, flat};
  };

  // For the symbols of an axis: their shares of the chosen step, the largest being 1; or null.
  regard.saliencyShares = (data, axis, step) => {
    const entry = entries(data).find((one) => one.columns === axis);
    if (!entry) return null;
    const matrix = shared(entry.values);
    const own = regard.rowOf(matrix, Math.min(step, matrix.rows - 1));
    const top = own.reduce((most, value) => Math.max(most, value), 0) || 1;
    return own.map((value) => value / top);
  };

  regard.saliency = (context) => {
    const {bus, axes, data} = context;
    const long = entries(data).some((entry) => axes[entry.columns].length > 16);
    return [make("p", {class: "lead"}, regard.say("saliency.lead")),
      make("div", {class: long ? "saliencies long" : "saliencies"}, entries(data).map((entry) => {
        const rows = {name: entry.rows, symbols: axes[entry.rows]};
        const columns = {name: entry.columns, symbols: axes[entry.columns]};
        const matrix = shared(entry.values);
        // An even spread over many symbols shall look pale.
        const top = matrix.flat.reduce((most, value) => Math.max(most, value), 0.2);
        const look = {colours: "warm", scale: "even", top};
        const key = regard.legend(regard.say("saliency.share"), [0, Math.round(top * 100) / 100], look);
        bus.on("theme", key.draw);
        const name = regard.say(`saliency.${entry.columns}`);
        return make("figure", {data: {saliency: entry.columns}}, make("figcaption", {}, name, key.element),
          regard.map(bus, name, rows, columns, matrix, look),
          regard.numbersTable(rows, columns, matrix, name));
      }))];
  };
})();
