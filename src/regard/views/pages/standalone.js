"use strict";
// The page of one inspection that is a file of its own: head, facts, all views.
(() => {
  const {make} = window.regard;
  const regard = window.regard;
  const data = JSON.parse(document.getElementById("inspection-data").textContent);

  const LONG = 240; // letters of both texts that would fill the window

  const fact = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));

  // The head of the page in the chosen language.
  const draw = () => {
    const {model, source, target, score} = data;
    const long = source.text.length + target.text.length > LONG;
    document.getElementById("title").replaceChildren(
      make("p", {class: "eyebrow"}, `${regard.say("page.eyebrow")} \u00b7 ${model.name}`),
      make("h1", {dir: "auto", class: long ? "long" : null}, source.text || target.text),
      ...(source.text ? [make("p", {class: "came", dir: "auto"}, target.text)] : []));
    const facts = [
      [regard.say("page.model"), regard.described(model)],
      [regard.say("page.parameters"),
        model.parameters && model.parameters.toLocaleString("en").replaceAll(",", "\u202f")],
      [regard.say("page.score"), Number.isFinite(score) ? regard.number(score) : null],
    ];
    document.getElementById("facts").replaceChildren(make("dl", {class: "facts"},
      facts.filter(([, value]) => value).map(([name, value]) => fact(name, value))));
    document.getElementById("foot").replaceChildren(
      make("p", {}, regard.say("page.made", {version: data.version})));
  };

  regard.switches(document.getElementById("switches"));
  draw();
  document.addEventListener("regard:language", draw);
  regard.inspection(document.getElementById("inspection"), data);
})();
