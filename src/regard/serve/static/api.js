// The server: requests, server-sent events, the key, and errors as the server words them.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const KEY = "regard.key";
  let key = null;
  try { key = sessionStorage.getItem(KEY); } catch { /* kept in memory only */ }

  // status: of HTTP; 0 where the server could not be reached or went away.
  class ServerError extends Error {
    constructor(message, status, body = {}) {
      super(message);
      this.status = status;
      this.field = body.field;
      this.again = status === 0 || status === 503;
    }
  }

  function headers(body) {
    return {
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(key ? { Authorization: `Bearer ${key}` } : {}),
    };
  }

  async function refusal(response) {
    let body = {};
    try { body = await response.json(); } catch { /* not ours: a proxy's page */ }
    const said = typeof body.error === "string" ? body.error : "";
    const where = body.field;
    const message = said || `${response.status} ${response.statusText}`.trim();
    const placed = where && !said.includes(where) ? `${where}: ${message}` : message;
    return new ServerError(placed, response.status, body);
  }

  function gone(problem) {
    if (problem.name === "AbortError" || problem instanceof ServerError) return problem;
    return new ServerError(regard.say("app.offline"), 0);
  }

  // The response, whatever it says; body: a text, or undefined for none.
  async function raw(path, method, body, signal) {
    try {
      return await fetch(path, { method, body, headers: headers(body), signal, cache: "no-store" });
    } catch (problem) {
      throw gone(problem);
    }
  }

  async function ask(path, body, signal) {
    const response = body === undefined
      ? await raw(path, "GET", undefined, signal)
      : await raw(path, "POST", JSON.stringify(body), signal);
    if (!response.ok) throw await refusal(response);
    return response;
  }

  async function json(path, body, signal) {
    const response = await ask(path, body, signal);
    try { return await response.json(); } catch (problem) { throw gone(problem); }
  }

  function parsed(block) {
    const lines = block.split("\n");
    const of = (name) => lines.filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
    return { event: of("event")[0], data: of("data").join("\n") };
  }

  // The answer at the end of a stream; `grow` is called with what there is so far.
  async function stream(body, grow, signal) {
    const response = await ask("stream", body, signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let answer = null;
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done && answer) return answer;
        if (done) throw new ServerError(regard.say("app.broken"), 0);
        const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
        rest = blocks.pop();
        let grown = null; // of what came together only the last is drawn
        for (const { event, data } of blocks.map(parsed)) {
          if (event === "partial") grown = data;
          if (event === "result") answer = JSON.parse(data);
          if (event === "error") throw new ServerError(JSON.parse(data).error, 400);
        }
        if (grown && !answer) grow(JSON.parse(grown));
      }
    } catch (problem) {
      reader.cancel().catch(() => {});
      throw gone(problem);
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
})();
