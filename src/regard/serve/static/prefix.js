// How symbols become text again: what an answer says before each of its symbols.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const GLUED = "\uffed"; // before a word that follows the one before it without a space

  const bare = (symbol) => symbol.replace(/^\u25cc(?=\p{M})/u, "").replaceAll("\u2423", " ");
  const WAYS = [
    (symbols) => symbols.join("").replaceAll("\u2581", " ").replace(/^ /, ""),
    (symbols) => symbols.map(bare).join(""),
    (symbols) => symbols.join(" ").replaceAll(` ${GLUED}`, ""),
  ];

  // The text before each symbol, and the whole text at the end; null where no way of putting the
  // symbols together gives the answer, so that a beginning cannot be told from them.
  app.beginnings = (answer) => {
    const symbols = answer.symbols || [];
    const way = WAYS.find((join) => join(symbols) === answer.text);
    if (!way) return null;
    return [...symbols, ""].map((_, place) => way(symbols.slice(0, place)));
  };
})();
