"use strict";
// Attention of all layers and heads: a tab per part, a small map per head, the selected one large.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  const PARTS = ["encoder", "decoder", "cross", "pooling"];
  const TOPS = [0.05, 0.1, 0.2, 0.5, 1]; // possible ends of a color scale

  const sameShape = (matrices) => matrices.every((one) =>
    one.rows === matrices[0].rows && one.columns === matrices[0].columns);

  // `loss` is lowest for the head whose ablation hurts most; for a regressor any change hurts.
  const headMap = (entry, head, number) => ({
    key: `${entry.layer}.${head}`, layer: entry.layer, head, entry,
    entropy: entry.entropy ? entry.entropy[head] : null,
    delta: entry.ablation_delta ? entry.ablation_delta[head] : null,
    loss: number ? -Math.abs(entry.ablation_delta[head]) : entry.ablation_delta[head],
    matrix: () => regard.matrix(entry.heads, head),
  });

  // The maps of a part: the heads of each layer, the mean of each layer, the mean of all.
  const mapsOfPart = (data, part) => {
    const entries = data.attention.filter((entry) => entry.part === part)
      .sort((one, other) => one.layer - other.layer);
    const layers = entries.map((entry) => {
      const count = regard.numbers(entry.heads).shape[0];
      const heads = Array.from({length: count}, (_, head) => headMap(entry, head, data.model.task === "regress"));
      const matrix = () => regard.mean(heads.map((one) => one.matrix()));
      const mean = count > 1 ? {key: `${entry.layer}.mean`, layer: entry.layer, head: "mean", entry, matrix} : null;
      return {layer: entry.layer, heads, mean};
    });
    const heads = layers.flatMap((layer) => layer.heads);
    const allMatrices = () => heads.map((one) => one.matrix());
    const all = layers.length > 1 && sameShape(allMatrices()) ? {
      key: "mean.mean", layer: "mean", head: "mean", entry: entries[0],
      matrix: () => regard.mean(allMatrices()),
    } : null;
    const known = heads.filter((one) => Number.isFinite(one.delta));
    const main = known.reduce((best, one) => !best || one.loss < best.loss ? one : best, null);
    const most = Math.max(1e-9, ...known.map((one) => Math.abs(one.delta)));
    // All heads of a part share one scale, so that they can be compared.
    const weight = heads.reduce((most, one) => one.matrix().flat.reduce((a, b) => Math.max(a, Math.abs(b)), most), 0);
    const top = TOPS.find((value) => value >= weight) || weight;
    // Kernels with implied weights may have negative ones.
    const signed = heads.some((one) => one.matrix().flat.some((value) => value < 0));
    const style = signed ? {colors: "signed", scale: "both", top} : {top};
    return {part, layers, heads, all, style, main: known.length > 1 && main.loss < 0 ? main : null, most};
  };

  regard.mapName = ({layer, head}) => {
    if (layer === "mean") return regard.say("head.all");
    return regard.say(head === "mean" ? "head.mean" : "head.name", {layer, head});
  };

  const title = (map, main) => {
    const parts = [regard.mapName(map)];
    if (Number.isFinite(map.entropy)) {
      parts.push(regard.say("head.entropy", {value: regard.number(map.entropy, 2)}));
    }
    if (Number.isFinite(map.delta)) {
      parts.push(regard.say("head.ablation", {value: regard.signed(map.delta)}));
    }
    if (main) parts.push(regard.say("head.main"));
    return parts.join(regard.say("comma"));
  };

  // A small map as a button; `caption` is shown below it when heads are sorted.
  const small = (group, map, choose, caption) => {
    const canvas = make("canvas", {"aria-hidden": "true"});
    const main = map === group.main;
    const effect = Number.isFinite(map.delta) ? Math.abs(map.delta) / group.most : null;
    const button = make("button", {
      type: "button", class: `small${main ? " main" : ""}`, title: title(map, main),
      "aria-label": title(map, main), data: {head: `${group.part}.${map.key}`},
      on: {click: () => choose(map)},
    }, canvas, main ? make("span", {class: "star", "aria-hidden": "true"}, "\u2605") : null,
    effect === null ? null : make("i", {class: "effect", style: {"--p": effect}}),
    caption ? make("span", {class: "small-caption"}, caption) : null);
    return {button, map, draw: () => regard.paint(canvas, map.matrix(), group.style)};
  };

  const byLayer = (group, choose) => {
    const widest = Math.max(...group.layers.map((layer) => layer.heads.length));
    const means = group.layers.some((layer) => layer.mean);
    const head = (text, label) => make("span", {class: "grid-head", title: label}, text);
    const smalls = [];
    const add = (map) => {
      if (!map) return make("span", {});
      const one = small(group, map, choose);
      smalls.push(one);
      return one.button;
    };
    const count = widest + (means ? 1 : 0);
    const grid = make("div", {
      class: "heads", style: {"--count": count}, role: "group", "aria-label": regard.say("attention.heads"),
    },
      head("", ""), Array.from({length: widest}, (_, index) => head(index, regard.say("head.number", {head: index}))),
      means ? head("\u00d8", regard.say("head.means")) : null,
      group.layers.map((layer) => [
        head(layer.layer, regard.say("head.layer", {layer: layer.layer})),
        Array.from({length: widest}, (_, index) => add(layer.heads[index])),
        means ? add(layer.mean) : null,
      ]),
      group.all ? [head("\u00d8", regard.say("head.all")),
        Array.from({length: count - 1}, () => make("span", {})), add(group.all)] : null);
    return {grid, smalls};
  };

  const sorted = (group, choose, order) => {
    const by = order === "entropy" ? "entropy" : "loss";
    const known = group.heads.filter((one) => Number.isFinite(one[by]))
      .sort((one, other) => one[by] - other[by]);
    const value = (one) => order === "entropy" ? regard.number(one.entropy, 2) : regard.signed(one.delta, 2);
    const smalls = known.map((one) => small(group, one, choose, `${one.layer}.${one.head}  ${value(one)}`));
    return {smalls, grid: make("div", {class: "heads ordered", role: "group",
      "aria-label": regard.say("attention.heads")}, smalls.map((one) => one.button))};
  };

  const orders = (group, state, redraw) => {
    const choices = [["layer", regard.say("order.layer")]];
    for (const order of ["entropy", "ablation"]) {
      const known = group.heads.filter((one) => Number.isFinite(order === "entropy" ? one.entropy : one.delta));
      if (known.length > 1) choices.push([order, regard.say(`order.${order}`)]);
    }
    if (choices.length === 1) return null;
    if (!choices.some(([value]) => value === state.order)) state.order = "layer";
    return make("div", {class: "control"}, make("span", {class: "label", "aria-hidden": "true"}, regard.say("order")),
      regard.segments(regard.say("order"), "order", choices, state.order, (order) => {
        state.order = order;
        redraw();
      }));
  };

  // All heads on the left, the selected one on the right.
  const part = (context, group, body) => {
    const {data, state, bus} = context;
    const large = make("div", {class: "large", data: {large: "attention"}});
    const left = make("div", {class: "heads-pane"});
    const everything = [...group.heads, ...group.layers.map((layer) => layer.mean), group.all].filter(Boolean);
    let smalls = [];
    let selected = everything.find((one) => one.key === state.heads[group.part])
      || group.main || group.all || group.layers[0].mean || group.heads[0];
    const press = () => smalls.forEach(({button, map}) =>
      button.setAttribute("aria-pressed", String(map.key === selected.key)));
    const choose = (map) => {
      selected = map;
      state.heads[group.part] = map.key;
      press();
      regard.head(context, large, map, group);
    };
    const list = () => {
      const made = state.order === "layer" ? byLayer(group, choose) : sorted(group, choose, state.order);
      smalls = made.smalls;
      press();
      regard.roving(made.grid, ".small");
      smalls.forEach((one) => one.draw());
      const words = regard.say(state.order === "layer" ? "attention.key" : "attention.keyOrdered");
      const key = group.main ? make("p", {class: "note"}, words) : null;
      left.replaceChildren(...[made.grid, key].filter(Boolean));
    };
    const control = orders(group, state, list);
    const lead = group.part === "decoder" && data.search ? "parallel" : group.part;
    body.replaceChildren(make("p", {class: "lead"}, regard.say(`attention.${lead}`)),
      ...(control ? [control] : []),
      make("div", {class: everything.length > 1 ? "attention" : "attention single"}, left, large));
    list();
    choose(selected);
    bus.only("theme", "smalls", () => smalls.forEach((one) => one.draw()));
  };

  regard.attention = (context) => {
    const {data, state} = context;
    const names = PARTS.filter((name) => data.attention.some((entry) => entry.part === name));
    if (!names.includes(state.tab)) state.tab = names.includes("cross") ? "cross" : names[0];
    const groups = {};
    const id = regard.fresh("part");
    const body = make("div", {class: "part", role: "tabpanel", id, tabindex: "-1"});
    const tabs = names.map((name) => make("button", {
      type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": id, data: {tab: name},
      on: {click: () => open(name)},
    }, regard.say(`part.${name}`)));
    const open = (name) => {
      state.tab = name;
      tabs.forEach((tab) => tab.setAttribute("aria-selected", String(tab.dataset.tab === name)));
      body.setAttribute("aria-labelledby", `${id}-${name}`);
      groups[name] = groups[name] || mapsOfPart(data, name);
      part(context, groups[name], body);
    };
    open(state.tab);
    const list = make("div", {class: "tabs", role: "tablist", "aria-label": regard.say("attention.title")}, tabs);
    return [regard.roving(list, "[role=tab]"), body];
  };
})();
