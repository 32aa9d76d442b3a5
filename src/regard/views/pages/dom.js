"use strict";
// Helpers of all components: elements, visible tokens, number formats, keyboard navigation.
(() => {
  const regard = window.regard = window.regard || {};
  const SVG = "http://www.w3.org/2000/svg";
  let count = 0;

  const fill = (node, attributes, children) => {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") {
        for (const [name, react] of Object.entries(value)) node.addEventListener(name, react);
      } else if (key === "data") {
        for (const [name, word] of Object.entries(value)) node.dataset[name] = word;
      } else if (key === "style") {
        for (const [name, word] of Object.entries(value)) node.style.setProperty(name, word);
      } else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return node;
  };

  // Create an element. Attributes: `on` (listeners), `data` and `style` are objects; text is escaped.
  regard.make = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);
  regard.shape = (tag, attributes, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);
  regard.fresh = (word) => `regard-${word}-${++count}`;

  // Storage is not available in some windows (files, private mode); values are then not kept.
  regard.recall = (key) => {
    try { return window.localStorage.getItem(`regard.${key}`); } catch { return null; }
  };
  regard.remember = (key, value) => {
    try { window.localStorage.setItem(`regard.${key}`, value); } catch { /* not kept */ }
  };

  const SIGNS = {
    "</s>": "sign.end", "<eos>": "sign.end", "<s>": "sign.start", "<bos>": "sign.start",
    "<unk>": "sign.unknown", "<pad>": "sign.padding",
    "<mask>": "sign.mask", "": "sign.empty",
  };
  const WHITE = {" ": "\u2423", "\u00a0": "\u237d", "\n": "\u21b5", "\t": "\u21e5", "\u3000": "\u25a1"};
  const quiet = (text) => regard.make("span", {class: "quiet"}, text);
  const codePoint = (char) =>
    `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

  // A token as a span with visible white space, combining marks and special tokens such as </s>.
  regard.token = (text) => {
    const node = regard.make("span", {class: "token", dir: "auto"});
    if (SIGNS[text]) {
      node.classList.add("sign");
      node.append(regard.say(SIGNS[text]));
      node.title = text;
      return node;
    }
    let plain = "";
    const flush = () => { if (plain) node.append(plain); plain = ""; };
    [...text].forEach((char, index) => {
      const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u.test(char) && char !== "\u200d";
      if (char === "\u2581" || WHITE[char] || hidden) {
        flush();
        node.append(quiet(WHITE[char] || (hidden ? codePoint(char) : char)));
      } else if (index === 0 && /\p{M}/u.test(char)) plain += `\u25cc${char}`;
      else plain += char;
    });
    flush();
    return node;
  };

  // The same as plain text, for labels and titles.
  regard.plain = (text) => SIGNS[text] ? regard.say(SIGNS[text])
    : [...text].map((char) => WHITE[char] || char).join("");

  // "rtl" if the first letter belongs to a right-to-left script.
  regard.direction = (tokens) => {
    const letters = tokens.filter((text) => !SIGNS[text]).join("").match(/\p{L}/u);
    const right = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
    return letters && right.test(letters[0]) ? "rtl" : "ltr";
  };

  regard.number = (value, digits = 3) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return "\u2013";
    return value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "\u2212");
  };
  regard.signed = (value, digits = 3) =>
    (value > 0 ? "+" : "") + regard.number(value, digits);
  regard.percent = (value) => {
    if (value > 0.9995 && value < 1) return ">99.9\u202f%";
    if (value > 0 && value < 0.0005) return "<0.1\u202f%";
    return `${(value * 100).toFixed(value > 0.9995 ? 0 : 1)}\u202f%`;
  };

  const middle = (node) => {
    const box = node.getBoundingClientRect();
    return {x: box.left + box.width / 2, y: box.top + box.height / 2, height: box.height};
  };
  const STEPS = {
    ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
  };
  const neighbor = (items, from, [across, down]) => {
    const here = middle(from);
    let best = null, least = Infinity;
    for (const item of items) {
      const there = middle(item);
      const x = there.x - here.x, y = there.y - here.y;
      const ahead = across ? x * across : y * down;
      const aside = Math.abs(across ? y : x);
      if (ahead < 2 || (across && aside > here.height * 0.75)) continue;
      const far = across ? ahead + aside * 3 : ahead * 4 + aside;
      if (far < least) [best, least] = [item, far];
    }
    return best;
  };

  // Roving tabindex: one tab stop for a group; arrow keys move to the neighbor in that direction.
  regard.roving = (group, selector) => {
    const items = () => [...group.querySelectorAll(selector)];
    const stop = (node) => {
      for (const item of items()) item.setAttribute("tabindex", item === node ? "0" : "-1");
    };
    group.addEventListener("focusin", (event) => {
      const item = event.target.closest(selector);
      if (item) stop(item);
    });
    group.addEventListener("keydown", (event) => {
      const item = event.target.closest(selector);
      if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
      const all = items();
      let next = null;
      if (event.key === "Home") next = all[0];
      else if (event.key === "End") next = all[all.length - 1];
      else if (STEPS[event.key]) {
        next = neighbor(all, item, STEPS[event.key]);
        if (!next && STEPS[event.key][0]) {
          const turned = getComputedStyle(group).direction === "rtl" ? -1 : 1;
          next = all[all.indexOf(item) + STEPS[event.key][0] * turned];
        }
      } else return;
      event.preventDefault();
      if (next) next.focus();
    });
    const all = items();
    stop(all.find((item) => item.getAttribute("aria-pressed") === "true"
      || item.getAttribute("aria-selected") === "true") || all[0]);
    return group;
  };

  // A scrolling pane, focusable only while it overflows.
  regard.scroller = (name, child, attributes) => {
    const pane = regard.make("div", {class: "scroll", role: "group", "aria-label": name, ...attributes}, child);
    new ResizeObserver(() => {
      const scrolls = pane.scrollWidth > pane.clientWidth || pane.scrollHeight > pane.clientHeight;
      if (scrolls) pane.setAttribute("tabindex", "0");
      else pane.removeAttribute("tabindex");
    }).observe(pane);
    return pane;
  };

  // A segmented control; `react` receives the value of the pressed button.
  regard.segments = (name, hook, choices, chosen, react) => {
    const buttons = choices.map(([value, label]) => regard.make("button", {
      type: "button", "aria-pressed": String(value === chosen), data: {[hook]: value},
      on: {click: () => {
        for (const button of buttons) {
          button.setAttribute("aria-pressed", String(button.dataset[hook] === value));
        }
        react(value);
      }},
    }, label));
    return regard.make("div", {class: "segments", role: "group", "aria-label": name}, buttons);
  };
})();
