"use strict";
// Tooltip with the values of all curves at the nearest step or minute.
(() => {
  for (const figure of document.querySelectorAll("figure.curve")) {
    const svg = figure.querySelector("svg");
    const data = JSON.parse(figure.querySelector("script").textContent);
    const shape = (name, parts) => {
      const node = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(parts)) node.setAttribute(key, value);
      return node;
    };
    const pixel = ([low, high, start, end], value) =>
      start + (value - low) / (high - low) * (end - start);
    const round = (value) =>
      value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(2) : String(+value.toPrecision(5));
    const nearest = (points, step) => points.reduce((best, point) =>
      Math.abs(point[0] - step) < Math.abs(best[0] - step) ? point : best);
    const say = window.regard.translated;
    const name = figure.closest(".over") ? (text) => text : say; // names of runs
    const tip = document.createElement("div");
    tip.className = "tip";
    let layer = null;

    const hide = () => { tip.remove(); if (layer) layer.remove(); layer = null; };
    const show = (event) => {
      hide();
      const box = svg.getBoundingClientRect();
      const at = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      const [low, high, start, end] = data.x;
      const step = low + (at - start) / (end - start) * (high - low);
      const near = data.series.map((line) => nearest(line.points, step));
      const closest = nearest(near, step)[0];
      const x = pixel(data.x, closest);
      layer = shape("g", {});
      layer.append(shape("path", {class: "cursor", d: `M${x} ${data.y[2]}V${data.y[3]}`}));
      near.forEach((point, index) => layer.append(shape("circle", {
        class: `cursor-dot ${data.styles[index]}`, r: 3.5, cx: pixel(data.x, point[0]), cy: pixel(data.y, point[1]),
      })));
      svg.append(layer);
      tip.textContent = [say(`${data.axis} ${round(closest)}`)].concat(near.map((point, index) => {
        const where = point[0] === closest ? "" : ` (${say(`${data.axis} ${round(point[0])}`)})`;
        return `${name(data.series[index].name)} ${round(point[1])}${where}`;
      })).join("\n");
      figure.append(tip);
      const left = x * box.width / svg.viewBox.baseVal.width;
      tip.style.left = `${left + tip.offsetWidth + 14 > box.width ? left - tip.offsetWidth - 10 : left + 10}px`;
      tip.style.top = `${svg.offsetTop || figure.querySelector("figcaption").offsetHeight + 8}px`;
    };
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", hide);
  }
})();
