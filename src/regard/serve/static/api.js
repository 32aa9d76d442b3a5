// API client: requests, server-sent events, the API key, and errors in the server's words.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const KEY = "regard.key";
  let key = null;
  try { key = sessionStorage.getItem(KEY); } catch { /* kept in memory only */ }

  // status: the HTTP status; 0 if the server is not reachable or the connection broke.
  class ServerError extends Error {
    constructor(message, status, body = {}) {
      super(message);
      this.status = status;
      this.field = body.field;
      this.canRetry = status === 0 || status === 503;
    }
  }

  function headers(body) {
    return {
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
    };
  }

  async function errorOf(response) {
    let body = {};
    try { body = await response.json(); } catch { /* not JSON: the page of a proxy */ }
    const { field } = body;
    const error = typeof body.error === "string" ? body.error : "";
    const message = error || `${response.status} ${response.statusText}`.trim();
    const located = field && !error.includes(field) ? `${field}: ${message}` : message;
    return new ServerError(located, response.status, body);
  }

  function connectionError(error) {
    if (error.name === "AbortError" || error instanceof ServerError) return error;
    return new ServerError(regard.say("app.offline"), 0);
  }

  // Returns the response, whatever its status; body: a string, or undefined for none.
  async function raw(path, method, body, signal) {
    try {
      return await fetch(path, { method, body, headers: headers(body), signal, cache: "no-store" });
    } catch (error) {
      throw connectionError(error);
    }
  }

  async function request(path, body, signal) {
    const response = body === undefined
      ? await raw(path, "GET", undefined, signal)
      : await raw(path, "POST", JSON.stringify(body), signal);
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async function json(path, body, signal) {
    const response = await request(path, body, signal);
    try { return await response.json(); } catch (error) { throw connectionError(error); }
  }

  function parseEvent(block) {
    const lines = block.split("\n");
    const values = (name) => lines.filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
    return { event: values("event")[0], data: values("data").join("\n") };
  }

  // Returns the result of a stream; calls onPartial with partial predictions.
  async function stream(body, onPartial, signal) {
    const response = await request("stream", body, signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let result = null;
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done && result) return result;
        if (done) throw new ServerError(regard.say("app.broken"), 0);
        const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
        rest = blocks.pop();
        let partial = null; // of events that arrive together only the last is drawn
        for (const { event, data } of blocks.map(parseEvent)) {
          if (event === "partial") partial = data;
          if (event === "result") result = JSON.parse(data);
          if (event === "error") throw new ServerError(JSON.parse(data).error, 400);
        }
        if (partial && !result) onPartial(JSON.parse(partial));
      }
    } catch (error) {
      reader.cancel().catch(() => {});
      throw connectionError(error);
    }
  }

  app.api = {
    raw,
    json,
    stream,
    hasKey: () => Boolean(key),
    setKey(value) {
      key = value || null;
      try {
        if (key) sessionStorage.setItem(KEY, key);
        else sessionStorage.removeItem(KEY);
      } catch { /* kept in memory only */ }
    },
  };

  // Prompts for the API key after a 401, then retries.
  app.promptForKey = (retry) => {
    const $ = (id) => document.getElementById(id);
    const form = $("key-form");
    $("loading").hidden = true;
    form.hidden = false;
    if (app.api.hasKey()) {
      app.api.setKey("");
      $("notice").replaceChildren(regard.make("p", { class: "notice bad" }, regard.say("app.key.wrong")));
    }
    $("api-key").value = "";
    $("api-key").focus();
    form.onsubmit = (event) => {
      event.preventDefault();
      app.api.setKey($("api-key").value.trim());
      form.hidden = true;
      $("notice").replaceChildren();
      retry();
    };
  };
})();
