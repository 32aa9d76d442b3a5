// Detokenization: the text before each token of a prediction.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const ATTACHED = "\uffed"; // marks a word without a space before it

  const visible = (token) => token.replace(/^\u25cc(?=\p{M})/u, "").replaceAll("\u2423", " ");
  const isFeature = (token) => token !== undefined && /^[;|,]./u.test(token);
  const feature = (token, position, tokens) =>
    isFeature(token) ? token.slice(isFeature(tokens[position - 1]) ? 0 : 1) : visible(token);
  const DETOKENIZERS = [
    (tokens) => tokens.join("").replaceAll("\u2581", " ").replace(/^ /, ""),
    (tokens) => tokens.map(visible).join(""),
    (tokens) => tokens.map(visible).join("").normalize("NFC"), // task.target.normalization=nfd
    (tokens) => tokens.map(feature).join(""),
    (tokens) => tokens.join(" ").replaceAll(` ${ATTACHED}`, ""),
  ];

  // Returns the text before each token, then the full text; null if no detokenizer reproduces the
  // text of the prediction.
  app.prefixes = (prediction) => {
    const tokens = prediction.tokens || [];
    const detokenize = DETOKENIZERS.find((join) => join(tokens) === prediction.text);
    if (!detokenize) return null;
    return [...tokens, ""].map((_, position) => detokenize(tokens.slice(0, position)));
  };
})();
