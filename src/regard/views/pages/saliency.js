"use strict";
// Which tokens an answer depends on: the size of the gradient, as a share of its row.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;

  const entries = (data) => data.saliency
    ? [data.saliency, data.saliency.decoder_inputs].filter(Boolean) : [];

  // For each entry its numbers as shares: a row sums to 1 over all that was read, source and answer.
  const shared = (data) => {
    const all = entries(data).map((entry) => regard.matrix(entry.values));
    const sums = Array.from({length: all[0].rows}, (_, row) => all.reduce((total, matrix) =>
      total + regard.rowOf(matrix, row).reduce((sum, value) => sum + value, 0), 0) || 1);
    return all.map(({rows, columns, flat}) => ({
      rows, columns, flat: flat.map((value, place) => value / sums[Math.floor(place / columns)]),
    }));
  };

  // For the tokens of an axis: their shares of the chosen step, the largest being 1; or null.
  regard.saliencyShares = (data, axis, step) => {
    const place = entries(data).findIndex((one) => one.columns === axis);
    if (place < 0) return null;
    const matrix = shared(data)[place];
    const own = regard.rowOf(matrix, Math.min(step, matrix.rows - 1));
    const top = own.reduce((most, value) => Math.max(most, value), 0) || 1;
    return own.map((value) => value / top);
  };

  regard.saliency = (context) => {
    const {bus, axes, data} = context;
    const long = entries(data).some((entry) => axes[entry.columns].length > 16);
    const matrices = shared(data);
    // Both have one scale. An even spread over many tokens shall look pale.
    const top = matrices.reduce((most, {flat}) => flat.reduce((a, b) => Math.max(a, b), most), 0.2);
    return [make("p", {class: "lead"}, regard.say("saliency.lead")),
      make("div", {class: long ? "saliencies long" : "saliencies"}, entries(data).map((entry, place) => {
        const rows = {name: entry.rows, tokens: axes[entry.rows]};
        const columns = {name: entry.columns, tokens: axes[entry.columns]};
        const matrix = matrices[place];
        const look = {colors: "warm", scale: "even", top};
        const key = regard.legend(regard.say("saliency.share"), [0, Math.round(top * 100) / 100], look);
        bus.on("theme", key.draw);
        const name = regard.say(`saliency.${entry.columns}`);
        return make("figure", {data: {saliency: entry.columns}}, make("figcaption", {}, name, key.element),
          regard.map(bus, name, rows, columns, matrix, look),
          regard.numbersTable(rows, columns, matrix, name));
      }))];
  };
})();
