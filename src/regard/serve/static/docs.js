// The API docs: every endpoint of /openapi.json with its fields, an example, curl and a try-it form.
//
// Hooks for tests: #contents, #endpoints, an endpoint is [data-endpoint="POST /predict"] with
// [data-role=fields|responses|body|curl|send|response], the status of a response is [data-status].
(() => {
  "use strict";
  const regard = window.regard;
  const app = regard.app;
  const make = (...parts) => regard.make(...parts);
  const $ = (id) => document.getElementById(id);
  const METHODS = ["get", "post", "put", "patch", "delete"];
  const MAX_SHOWN = 200_000; // characters of a response
  const page = { api: null, model: null };

  const isPage = (one) => "text/html" in (one.responses?.[200]?.content || {});

  function operations() {
    const all = Object.entries(page.api.paths || {}).flatMap(([path, methods]) =>
      METHODS.filter((method) => methods[method])
        .map((method) => ({ path, method: method.toUpperCase(), ...methods[method] })));
    return all.filter((one) => !isPage(one));
  }

  const anchor = (one) => `${one.method}${one.path}`.replace(/[^A-Za-z0-9]+/g, "-").toLowerCase();
  const title = (one) => [
    make("span", { class: `method ${one.method.toLowerCase()}` }, one.method), make("code", {}, one.path),
  ];
  const jsonSchema = (content) => content?.["application/json"]?.schema;

  function table(rows, role) {
    if (!rows.length) return null;
    const required = () => make("span", { class: "required" }, regard.say("docs.required"));
    const defaultValue = (value) =>
      make("span", { class: "muted" }, ` ${regard.say("docs.default", { value: JSON.stringify(value) })}`);
    return make("table", { data: { role } }, make("tbody", {}, rows.map((row) => make("tr", {},
      make("th", { scope: "row" }, make("code", {}, row.name), row.required ? required() : null),
      make("td", {}, make("code", { class: "type" }, row.type),
        make("span", {}, row.about, row.default !== undefined && !row.required ? defaultValue(row.default) : null))))));
  }

  function responses(one) {
    const mediaTypes = (content) =>
      make("p", { class: "muted" }, Object.keys(content || {}).join(", ") || regard.say("docs.untyped"));
    const all = Object.entries(one.responses || {});
    const rows = all.map(([status, { description, content }]) => make("details", {},
      make("summary", {}, make("code", {}, status), ` ${description || ""}`),
      table(app.schemaFields(page.api, jsonSchema(content)), "fields") || mediaTypes(content)));
    if (!rows.length) return null;
    return make("div", { class: "responses", data: { role: "responses" } },
      make("h3", {}, regard.say("docs.responses")), rows);
  }

  // Returns the example of an endpoint, with a model and a text of this server.
  function example(one) {
    const media = one.requestBody?.content?.["application/json"];
    if (!media) return undefined;
    const named = Object.values(media.examples || {})[0]?.value;
    const value = media.example ?? named ?? app.schemaExample(page.api, media.schema);
    if (!page.model || !value || typeof value !== "object") return value;
    const text = page.model.examples[0];
    return {
      model: page.model.name, ...value,
      ...(text && "texts" in value ? { texts: [text] } : {}), ...(text && "text" in value ? { text } : {}),
    };
  }

  function curl(one, body) {
    if (body !== undefined) return app.curlCommand(one.path.slice(1), body);
    const key = app.api.hasKey() ? " \\\n  -H \"Authorization: Bearer $REGARD_API_KEY\"" : "";
    return `curl ${app.shellQuote(new URL(one.path.slice(1), document.baseURI).href)}${key}`;
  }

  async function send(one, body, box) {
    const started = performance.now();
    box.replaceChildren(make("p", { class: "muted" }, regard.say("app.working")));
    try {
      const response = await app.api.raw(one.path.slice(1), one.method, body);
      const text = await response.text();
      const latency = Math.round(performance.now() - started);
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON */ }
      const rest = shown.length - MAX_SHOWN;
      box.replaceChildren(
        make("p", { class: response.ok ? "good" : "bad", data: { status: response.status } },
          `${response.status} \u00b7 ${regard.say("app.milliseconds", { count: latency })}`),
        make("pre", { tabindex: 0, dir: "auto" }, rest > 0 ? shown.slice(0, MAX_SHOWN) : shown),
        rest > 0 ? make("p", { class: "muted" }, regard.say("docs.more", { count: rest })) : "");
      app.announce(String(response.status));
    } catch (error) {
      app.showError(box, error, () => send(one, body, box));
    }
  }

  function tryIt(one) {
    const value = example(one);
    const box = make("div", { data: { role: "response" } });
    const invalid = make("p", { class: "bad note", role: "alert" });
    const command = make("pre", { tabindex: 0, dir: "ltr", data: { role: "curl" } }, curl(one, value));
    const body = value === undefined ? null : make("textarea", {
      "aria-label": regard.say("docs.body"), spellcheck: "false", data: { role: "body" }, rows: 6,
      on: { input: () => {
        try {
          command.textContent = curl(one, JSON.parse(body.value));
          invalid.textContent = "";
        } catch (error) { invalid.textContent = error.message; }
      } },
    }, JSON.stringify(value, null, 2));
    const copyButton = app.button("docs.copy", async () => {
      const copied = await app.copyText(command.textContent);
      copyButton.textContent = regard.say(copied ? "app.copied" : "app.copy.manual");
    }, { class: "ghost" });
    const attributes = { class: "primary", data: { role: "send" } };
    const sendButton = app.button("docs.send", () => send(one, body?.value, box), attributes);
    return make("div", { class: "try-it" }, body, invalid, command,
      make("div", { class: "toolbar" }, sendButton, copyButton), box);
  }

  function endpoint(one) {
    const schema = jsonSchema(one.requestBody?.content);
    const rows = schema ? app.schemaFields(page.api, schema) : [];
    const parameters = (one.parameters || []).map((each) => ({
      name: each.name, type: `${each.in} ${each.schema?.type || ""}`, about: each.description || "",
      required: each.required,
    }));
    const isFixed = !one.path.includes("{");
    return make("section", { class: "endpoint", id: anchor(one), data: { endpoint: `${one.method} ${one.path}` } },
      make("h2", {}, title(one)),
      make("div", { class: "two" },
        make("div", {},
          make("p", { class: "lead" }, one.description || one.summary || ""),
          rows.length + parameters.length ? make("h3", {}, regard.say("docs.fields")) : null,
          table([...parameters, ...rows], "fields"), responses(one)),
        isFixed ? tryIt(one) : null));
  }

  function draw() {
    const all = operations();
    const { title: name, version, description } = page.api.info;
    $("contents").replaceChildren(make("ul", {}, all.map((one) =>
      make("li", {}, make("a", { href: `#${anchor(one)}` }, title(one))))));
    $("endpoints").replaceChildren(
      make("div", { class: "opening" },
        make("h2", {}, `${name} `, make("small", { class: "muted" }, version)),
        make("p", { class: "lead" }, description || "")),
      ...all.map(endpoint));
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  }

  async function load() {
    $("notice").replaceChildren();
    try {
      page.api = await app.api.json("openapi.json");
    } catch (error) {
      app.showError($("notice"), error, load);
      return;
    }
    try {
      page.model = (await app.api.json("models")).models[0];
    } catch { page.model = null; } // without an API key: generic examples
    draw();
  }

  $("key-form").addEventListener("submit", (event) => event.preventDefault());
  $("api-key").addEventListener("change", () => { app.api.setKey($("api-key").value.trim()); load(); });
  document.addEventListener("regard:language", () => { if (page.api) draw(); });
  load();
})();
