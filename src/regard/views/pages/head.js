"use strict";
// The selected head: statistics, heat map or lines, and a table of values.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;

  const fact = (key, value) => make("div", {title: regard.say(`fact.${key}.why`)},
    make("dt", {}, regard.say(`fact.${key}`)),
    make("dd", {}, value, make("small", {}, regard.say(`fact.${key}.unit`))));

  const statistics = (map, number) => {
    const list = [];
    if (Number.isFinite(map.entropy)) {
      list.push(fact("entropy", regard.number(map.entropy, 2)));
      list.push(fact("effective", regard.number(Math.exp(map.entropy), 1)));
    }
    if (Number.isFinite(map.delta)) {
      list.push(fact(number ? "number" : "ablation", regard.signed(map.delta)));
    }
    return list.length ? make("dl", {class: "facts"}, list) : null;
  };

  // What a reader must know about the matrix: whether it is implied, and what hatching means.
  const remarks = ({implied, hidden}) => [["implied", implied], ["hidden", hidden && hidden.length]]
    .filter(([, holds]) => holds)
    .map(([key]) => make("p", {class: "says", data: {remark: key}}, regard.say(`attention.${key}`)));

  // The module path of the same values in `regard.capture`.
  const modulePath = ({entry, layer, head}) => {
    if (layer === "mean") return null;
    return make("code", {class: "where"}, head === "mean" ? entry.name : `${entry.name}[${head}]`);
  };

  // Draw a map into the pane and remove the listeners of the previous one.
  regard.head = (context, pane, map, {main, style}) => {
    const {axes, state} = context;
    const bus = context.bus.group("large");
    const {entry} = map;
    const rows = {name: entry.rows, tokens: axes[entry.rows]};
    const columns = {name: entry.columns, tokens: axes[entry.columns]};
    const matrix = map.matrix();
    const name = regard.mapName(map);
    const view = make("div", {class: "view"});
    const draw = () => {
      bus.clear();
      const lines = state.view === "lines";
      const parts = style.scale === "both" ? [-1, 0, 1] : [0, 0.1, 0.5, 1];
      const ticks = parts.map((part) => part * style.top);
      const key = lines ? null : regard.legend(regard.say("map.weight"), ticks, style);
      if (key) bus.on("theme", key.draw);
      view.replaceChildren(...[
        lines ? regard.lines(bus, rows, columns, matrix)
          : regard.map(bus, name, rows, columns, matrix, {...style, hidden: entry.hidden}),
        key && key.element, regard.numbersTable(rows, columns, matrix, name)].filter(Boolean));
      bus.repeat();
    };
    const badge = main === map ? make("span", {class: "badge"}, `\u2605 ${regard.say("head.main")}`) : null;
    const views = ["heat", "lines"].map((one) => [one, regard.say(`view.${one}`)]);
    pane.dataset.shown = `${entry.part}.${map.key}`;
    pane.replaceChildren(
      make("div", {class: "large-top"},
        make("h3", {}, name, badge),
        regard.segments(regard.say("view"), "view", views, state.view, (value) => { state.view = value; draw(); })),
      ...[modulePath(map), statistics(map, context.data.model.task === "regress"), view,
        ...remarks(entry)].filter(Boolean));
    draw();
  };
})();
