"use strict";
// The standalone page of an inspection: header, facts and all views.
(() => {
  const {make} = window.regard;
  const regard = window.regard;
  const data = JSON.parse(document.getElementById("inspection-data").textContent);

  const LONG = 240; // characters of source and target above which the title is small

  const fact = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));

  // Render the header in the selected language.
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
      make("p", {}, regard.say("page.footer", {version: data.version})));
  };

  regard.switches(document.getElementById("switches"));
  draw();
  document.addEventListener("regard:language", draw);
  regard.inspection(document.getElementById("inspection"), data);
})();
