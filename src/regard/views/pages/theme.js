"use strict";
// Theme and language switches; stored if the browser allows it.
(() => {
  const regard = window.regard = window.regard || {};
  const root = document.documentElement;
  const emit = (name) => document.dispatchEvent(new CustomEvent(`regard:${name}`));

  // "auto" follows the system.
  regard.dress = (theme) => {
    regard.theme = theme;
    if (theme === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    regard.remember("theme", theme);
    emit("theme");
  };

  regard.speak = (language) => {
    regard.language = language;
    root.lang = language === "zh" ? "zh-Hans" : "en";
    regard.remember("language", language);
    emit("language");
  };

  // Render both switches into an element; redraw them when the language changes.
  regard.switches = (element) => {
    const draw = () => {
      const held = element.contains(document.activeElement)
        ? document.activeElement.dataset.language : null;
      const themes = ["auto", "light", "dark"].map((theme) => [theme, regard.say(`theme.${theme}`)]);
      element.replaceChildren(
        regard.segments(regard.say("theme"), "theme", themes, regard.theme, regard.dress),
        regard.segments(regard.say("language"), "language",
          [["en", "English"], ["zh", "中文"]], regard.language, regard.speak),
      );
      element.querySelector("[data-language=zh]").lang = "zh-Hans";
      element.querySelector("[data-language=en]").lang = "en";
      if (held) element.querySelector(`[data-language=${held}]`).focus();
    };
    draw();
    document.addEventListener("regard:language", draw);
    return {destroy: () => document.removeEventListener("regard:language", draw)};
  };

  // Print in the light theme: repaint all canvases before and after.
  window.addEventListener("beforeprint", () => { root.setAttribute("data-theme", "light"); emit("theme"); });
  window.addEventListener("afterprint", () => {
    if (regard.theme === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", regard.theme);
    emit("theme");
  });

  const theme = regard.recall("theme");
  const language = regard.recall("language");
  const reader = (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
  regard.theme = ["light", "dark"].includes(theme) ? theme : "auto";
  regard.language = ["en", "zh"].includes(language) ? language : reader;
  if (regard.theme !== "auto") root.setAttribute("data-theme", regard.theme);
  root.lang = regard.language === "zh" ? "zh-Hans" : "en";
  window.matchMedia("(prefers-color-scheme: dark)")
    .addEventListener("change", () => emit("theme"));
})();
