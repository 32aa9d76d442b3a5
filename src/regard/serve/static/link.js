// The state of the page as a URL fragment, which browsers never send to a server.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});

  function paneFields(value, suffix) {
    const { model, search, nbest, constraints } = value;
    return [
      [`model${suffix}`, model],
      ...(Object.keys(search).length ? [[`search${suffix}`, JSON.stringify(search)]] : []),
      ...(nbest !== 5 ? [[`nbest${suffix}`, nbest]] : []),
      ...(constraints.prefix ? [[`prefix${suffix}`, constraints.prefix]] : []),
      ...constraints.require.map((word) => [`require${suffix}`, word]),
      ...constraints.ban.map((word) => [`ban${suffix}`, word]),
    ];
  }

  // Lone surrogates cannot be encoded in a URL.
  const encode = (text) => encodeURIComponent(text.replace(/\p{Cs}/gu, "\ufffd"));

  // state: {text, compare, target, panes: [value, value]}.
  app.fragment = (state) => {
    const fields = [
      ...paneFields(state.panes[0], ""),
      ...(state.compare ? paneFields(state.panes[1], "2") : []),
      ["text", state.text],
      ...(state.target ? [["target", state.target]] : []),
    ];
    return `#${fields.map(([key, value]) => `${key}=${encode(String(value))}`).join("&")}`;
  };

  function parseSearch(text) {
    try {
      const value = JSON.parse(text);
      return value && typeof value === "object" && !Array.isArray(value) ? value : {};
    } catch { return {}; }
  }

  function parsePane(fields, suffix) {
    const nbest = Number(fields.get(`nbest${suffix}`));
    return {
      model: fields.get(`model${suffix}`),
      search: parseSearch(fields.get(`search${suffix}`)),
      nbest: Number.isInteger(nbest) && nbest > 0 ? nbest : 5,
      constraints: {
        prefix: fields.get(`prefix${suffix}`) || "",
        require: fields.getAll(`require${suffix}`),
        ban: fields.getAll(`ban${suffix}`),
      },
    };
  }

  // Returns the state of a fragment; null if it has none.
  app.parseFragment = (fragment) => {
    const fields = new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"));
    if (!fields.has("text") && !fields.has("model")) return null;
    return {
      text: fields.get("text") || "", compare: fields.has("model2"), target: fields.get("target") || "",
      panes: [parsePane(fields, ""), parsePane(fields, "2")],
    };
  };
})();
