"use strict";
// Saliency: gradient norms of the outputs, normalized per row.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;

  const entries = (data) => data.saliency
    ? [data.saliency, data.saliency.decoder_inputs].filter(Boolean) : [];

  // Normalized values: each row sums to 1 over source and decoder inputs.
  const normalized = (data) => {
    const all = entries(data).map((entry) => regard.matrix(entry.values));
    const sums = Array.from({length: all[0].rows}, (_, row) => all.reduce((total, matrix) =>
      total + regard.rowOf(matrix, row).reduce((sum, value) => sum + value, 0), 0) || 1);
    return all.map(({rows, columns, flat}) => ({
      rows, columns, flat: flat.map((value, index) => value / sums[Math.floor(index / columns)]),
    }));
  };

  // Saliency of the tokens of an axis for a step, scaled to a maximum of 1; or null.
  regard.saliencyOfStep = (data, axis, step) => {
    const index = entries(data).findIndex((one) => one.columns === axis);
    if (index < 0) return null;
    const matrix = normalized(data)[index];
    const own = regard.rowOf(matrix, Math.min(step, matrix.rows - 1));
    const top = own.reduce((most, value) => Math.max(most, value), 0) || 1;
    return own.map((value) => value / top);
  };

  regard.saliency = (context) => {
    const {bus, axes, data} = context;
    const long = entries(data).some((entry) => axes[entry.columns].length > 16);
    const matrices = normalized(data);
    // Both maps share one scale; uniform saliency over many tokens looks pale.
    const top = matrices.reduce((most, {flat}) => flat.reduce((a, b) => Math.max(a, b), most), 0.2);
    return [make("p", {class: "lead"}, regard.say("saliency.lead")),
      make("div", {class: long ? "saliencies long" : "saliencies"}, entries(data).map((entry, index) => {
        const rows = {name: entry.rows, tokens: axes[entry.rows]};
        const columns = {name: entry.columns, tokens: axes[entry.columns]};
        const matrix = matrices[index];
        const style = {colors: "warm", scale: "even", top};
        const key = regard.legend(regard.say("saliency.fraction"), [0, Math.round(top * 100) / 100], style);
        bus.on("theme", key.draw);
        const name = regard.say(`saliency.${entry.columns}`);
        return make("figure", {data: {saliency: entry.columns}}, make("figcaption", {}, name, key.element),
          regard.map(bus, name, rows, columns, matrix, style),
          regard.numbersTable(rows, columns, matrix, name));
      }))];
  };
})();
