"use strict";
// The chosen head, large: its numbers, as heat map or as lines, and as a table.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;

  const fact = (key, value) => make("div", {title: regard.say(`fact.${key}.why`)},
    make("dt", {}, regard.say(`fact.${key}`)),
    make("dd", {}, value, make("small", {}, regard.say(`fact.${key}.unit`))));

  const facts = (picture, number) => {
    const list = [];
    if (Number.isFinite(picture.entropy)) {
      list.push(fact("entropy", regard.number(picture.entropy, 2)));
      list.push(fact("looks", regard.number(Math.exp(picture.entropy), 1)));
    }
    if (Number.isFinite(picture.delta)) {
      list.push(fact(number ? "number" : "ablation", regard.signed(picture.delta)));
    }
    return list.length ? make("dl", {class: "facts"}, list) : null;
  };

  // Where `regard.capture` has the same numbers.
  const where = ({entry, layer, head}) => {
    if (layer === "mean") return null;
    return make("code", {class: "where"}, head === "mean" ? entry.name : `${entry.name}[${head}]`);
  };

  // Draws a picture into the room; what listened for the one before is let go.
  regard.head = (context, room, picture, {main, top}) => {
    const {axes, state} = context;
    const bus = context.bus.room("large");
    const {entry} = picture;
    const rows = {name: entry.rows, tokens: axes[entry.rows]};
    const columns = {name: entry.columns, tokens: axes[entry.columns]};
    const matrix = picture.matrix();
    const name = regard.pictureName(picture);
    const view = make("div", {class: "view"});
    const draw = () => {
      bus.clear();
      const lines = state.view === "lines";
      const ticks = [0, 0.1, 0.5, 1].map((part) => part * top);
      const key = lines ? null : regard.legend(regard.say("map.weight"), ticks, {top});
      if (key) bus.on("theme", key.draw);
      view.replaceChildren(...[
        lines ? regard.lines(bus, rows, columns, matrix) : regard.map(bus, name, rows, columns, matrix, {top}),
        key && key.element, regard.numbersTable(rows, columns, matrix, name)].filter(Boolean));
      bus.again();
    };
    const badge = main === picture ? make("span", {class: "badge"}, `\u2605 ${regard.say("head.main")}`) : null;
    const views = ["heat", "lines"].map((one) => [one, regard.say(`view.${one}`)]);
    room.dataset.shown = `${entry.part}.${picture.key}`;
    room.replaceChildren(
      make("div", {class: "large-top"},
        make("h3", {}, name, badge),
        regard.segments(regard.say("view"), "view", views, state.view, (value) => { state.view = value; draw(); })),
      ...[where(picture), facts(picture, context.data.model.task === "regress"), view].filter(Boolean));
    draw();
  };
})();
