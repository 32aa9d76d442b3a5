// Shared by the web UI and the API docs: translation of the HTML, buttons, errors, switches.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});

  // Sets the text (data-i18n) and aria-label (data-i18n-label) of all elements below a root.
  app.translate = (root) => {
    for (const node of root.querySelectorAll("[data-i18n]")) {
      node.textContent = regard.say(node.dataset.i18n);
    }
    for (const node of root.querySelectorAll("[data-i18n-label]")) {
      node.setAttribute("aria-label", regard.say(node.dataset.i18nLabel));
    }
  };

  // Announces a text to screen readers, politely.
  app.announce = (text) => {
    document.getElementById("status").textContent = text;
  };

  // Returns a button with a translated label; attributes as for regard.make.
  app.button = (key, onClick, attributes) =>
    regard.make("button", { type: "button", on: { click: onClick }, ...attributes }, regard.say(key));

  // Shows an error, with a retry button if a retry may help.
  app.showError = (element, error, retry) => {
    const button = retry && error.canRetry
      ? app.button("app.retry", () => retry(), { data: { role: "retry" } }) : null;
    element.replaceChildren(regard.make("div", { class: "notice bad", role: "alert" },
      regard.make("p", { dir: "auto" }, error.message), button));
  };

  document.addEventListener("regard:language", () => app.translate(document));
  app.translate(document);
  regard.switches(document.getElementById("switches"));
})();
