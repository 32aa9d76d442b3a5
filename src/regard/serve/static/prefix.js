// How tokens become text again: what an answer says before each of its tokens.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const GLUED = "\uffed"; // before a word that follows the one before it without a space

  const bare = (token) => token.replace(/^\u25cc(?=\p{M})/u, "").replaceAll("\u2423", " ");
  const WAYS = [
    (tokens) => tokens.join("").replaceAll("\u2581", " ").replace(/^ /, ""),
    (tokens) => tokens.map(bare).join(""),
    (tokens) => tokens.join(" ").replaceAll(` ${GLUED}`, ""),
  ];

  // The text before each token, and the whole text at the end; null where no way of putting the
  // tokens together gives the answer, so that a beginning cannot be told from them.
  app.beginnings = (answer) => {
    const tokens = answer.tokens || [];
    const way = WAYS.find((join) => join(tokens) === answer.text);
    if (!way) return null;
    return [...tokens, ""].map((_, place) => way(tokens.slice(0, place)));
  };
})();
