// The state of the page as a link: all of it stands behind the #, which no server is sent.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});

  function sideParts(value, end) {
    const { model, search, nbest, wish } = value;
    return [
      [`model${end}`, model],
      ...(Object.keys(search).length ? [[`search${end}`, JSON.stringify(search)]] : []),
      ...(nbest !== 5 ? [[`nbest${end}`, nbest]] : []),
      ...(wish.prefix ? [[`prefix${end}`, wish.prefix]] : []),
      ...wish.require.map((word) => [`require${end}`, word]),
      ...wish.ban.map((word) => [`ban${end}`, word]),
    ];
  }

  // Halves of characters have no place in an address.
  const coded = (text) => encodeURIComponent(text.replace(/\p{Cs}/gu, "\ufffd"));

  // state: {text, compare, target, panes: [value, value]}.
  app.fragment = (state) => {
    const parts = [
      ...sideParts(state.panes[0], ""),
      ...(state.compare ? sideParts(state.panes[1], "2") : []),
      ["text", state.text],
      ...(state.target ? [["target", state.target]] : []),
    ];
    return `#${parts.map(([key, value]) => `${key}=${coded(String(value))}`).join("&")}`;
  };

  function search(text) {
    try {
      const found = JSON.parse(text);
      return found && typeof found === "object" && !Array.isArray(found) ? found : {};
    } catch { return {}; }
  }

  function side(found, end) {
    const nbest = Number(found.get(`nbest${end}`));
    return {
      model: found.get(`model${end}`),
      search: search(found.get(`search${end}`)),
      nbest: Number.isInteger(nbest) && nbest > 0 ? nbest : 5,
      wish: {
        prefix: found.get(`prefix${end}`) || "",
        require: found.getAll(`require${end}`),
        ban: found.getAll(`ban${end}`),
      },
    };
  }

  // The state that a fragment describes; null where it describes none.
  app.stateOf = (fragment) => {
    const found = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
    if (!found.has("text") && !found.has("model")) return null;
    return {
      text: found.get("text") || "", compare: found.has("model2"), target: found.get("target") || "",
      panes: [side(found, ""), side(found, "2")],
    };
  };
})();
