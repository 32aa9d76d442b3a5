"use strict";
// Chinese reports: all texts are translated, except code and data of the user (translate="no").
// `regard.chinese` maps English texts to Chinese. {1} stands for any text, {1:n} for a number,
// {1:t} for a text that is translated itself.
(() => {
  const regard = window.regard;
  const ATTRIBUTES = ["aria-label", "title", "data-label"];
  const KINDS = {n: "([-+]?[\\d.,]+(?:e[-+]?\\d+)?[%kMGT]?)", t: "(.+?)"};

  // [regular expression, Chinese template, index and kind of each value]
  const pattern = ([english, chinese]) => {
    const values = [];
    const source = english.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{(\d+)(?::(\w))?\}/g, (whole, index, kind) => {
      values.push([index, kind]);
      return KINDS[kind] || "(.+?)";
    });
    return [new RegExp(`^${source}$`, "su"), chinese, values];
  };
  const patterns = Object.entries(regard.chinese).filter(([english]) => english.includes("{1")).map(pattern);

  const chinese = (text) => {
    const known = regard.chinese[text] ?? regard.chinese[text[0].toLowerCase() + text.slice(1)];
    if (known !== undefined) return known;
    for (const [regex, template, values] of patterns) {
      const found = regex.exec(text);
      if (!found) continue;
      const parts = {};
      values.forEach(([index, kind], at) => { parts[index] = kind === "t" ? chinese(found[at + 1]) : found[at + 1]; });
      return template.replace(/\{(\d+)\}/g, (whole, index) => parts[index]);
    }
    const parts = text.split(", ");  // a list
    const translated = parts.length > 1 ? parts.map(chinese) : parts;
    return translated.some((part, at) => part === parts[at]) ? text : translated.join("\uff0c");
  };
  regard.translated = (text) => text && regard.language === "zh" ? chinese(text) : text;

  const isText = (node) => {
    const marked = node.closest("[translate], code, pre, script, .switches");
    return !marked || marked.getAttribute("translate") === "yes";
  };
  const texts = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.data.trim() && isText(node.parentElement)) texts.push([node, node.data, node.data.trim()]);
  }
  const labels = ATTRIBUTES.flatMap((name) => [...document.querySelectorAll(`main [${name}]`)]
    .map((node) => [node, name, node.getAttribute(name)]));
  const title = document.title;

  const draw = () => {
    for (const [node, whole, text] of texts) node.data = whole.replace(text, () => regard.translated(text));
    for (const [node, name, text] of labels) node.setAttribute(name, regard.translated(text));
    document.title = regard.translated(title);
  };
  draw();
  regard.switches(document.getElementById("switches"));
  document.addEventListener("regard:language", draw);
})();
