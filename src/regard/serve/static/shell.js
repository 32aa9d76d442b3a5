// What the page and the API page share: words in the HTML, switches, what is said aloud.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});

  // Fills data-say (the text) and data-say-label (aria-label) of all below an element.
  app.sayAll = (root) => {
    for (const node of root.querySelectorAll("[data-say]")) {
      node.textContent = regard.say(node.dataset.say);
    }
    for (const node of root.querySelectorAll("[data-say-label]")) {
      node.setAttribute("aria-label", regard.say(node.dataset.sayLabel));
    }
  };

  // Tells a screen reader, once and politely.
  app.announce = (text) => {
    document.getElementById("status").textContent = text;
  };

  // A button with a word of a key; attributes as for regard.make.
  app.button = (key, click, attributes) =>
    regard.make("button", { type: "button", on: { click }, ...attributes }, regard.say(key));

  // A refusal in its place, with a button where trying again may help.
  app.showError = (element, problem, again) => {
    const repeat = again && problem.again
      ? app.button("app.again", () => again(), { data: { role: "again" } }) : null;
    element.replaceChildren(regard.make("div", { class: "notice bad", role: "alert" },
      regard.make("p", { dir: "auto" }, problem.message), repeat));
  };

  document.addEventListener("regard:language", () => app.sayAll(document));
  app.sayAll(document);
  regard.switches(document.getElementById("switches"));
})();
