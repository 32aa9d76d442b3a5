// The API page: every route of /openapi.json with its fields, an example, curl, and a way to try it.
//
// Hooks for tests: #contents, #routes, a route is [data-route="POST /predict"] with
// [data-role=fields|responses|body|curl|send|answer], the status of an answer is [data-status].
(() => {
  "use strict";
  const regard = window.regard;
  const app = regard.app;
  const make = (...parts) => regard.make(...parts);
  const $ = (id) => document.getElementById(id);
  const METHODS = ["get", "post", "put", "patch", "delete"];
  const MOST = 200_000; // characters of an answer that are drawn
  const page = { api: null, model: null };

  const isPage = (one) => "text/html" in (one.responses?.[200]?.content || {});

  function operations() {
    const all = Object.entries(page.api.paths || {}).flatMap(([path, ways]) =>
      METHODS.filter((method) => ways[method])
        .map((method) => ({ path, method: method.toUpperCase(), ...ways[method] })));
    return all.filter((one) => !isPage(one));
  }

  const anchor = (one) => `${one.method}${one.path}`.replace(/[^A-Za-z0-9]+/g, "-").toLowerCase();
  const title = (one) => [
    make("span", { class: `method ${one.method.toLowerCase()}` }, one.method), make("code", {}, one.path),
  ];
  const jsonOf = (content) => content?.["application/json"]?.schema;

  function table(rows, role) {
    if (!rows.length) return null;
    const needed = () => make("span", { class: "needed" }, regard.say("docs.needed"));
    const usual = (value) =>
      make("span", { class: "muted" }, ` ${regard.say("docs.default", { value: JSON.stringify(value) })}`);
    return make("table", { data: { role } }, make("tbody", {}, rows.map((row) => make("tr", {},
      make("th", { scope: "row" }, make("code", {}, row.name), row.needed ? needed() : null),
      make("td", {}, make("code", { class: "type" }, row.type),
        make("span", {}, row.about, row.usual !== undefined && !row.needed ? usual(row.usual) : null))))));
  }

  function responses(one) {
    const plain = (content) =>
      make("p", { class: "muted" }, Object.keys(content || {}).join(", ") || regard.say("docs.free"));
    const all = Object.entries(one.responses || {});
    const rows = all.map(([status, { description, content }]) => make("details", {},
      make("summary", {}, make("code", {}, status), ` ${description || ""}`),
      table(app.fieldsOf(page.api, jsonOf(content)), "fields") || plain(content)));
    if (!rows.length) return null;
    return make("div", { class: "responses", data: { role: "responses" } },
      make("h3", {}, regard.say("docs.responses")), rows);
  }

  // The example of the description, with a model and a text that this server has.
  function example(one) {
    const media = one.requestBody?.content?.["application/json"];
    if (!media) return undefined;
    const named = Object.values(media.examples || {})[0]?.value;
    const given = media.example ?? named ?? app.exampleOf(page.api, media.schema);
    if (!page.model || !given || typeof given !== "object") return given;
    const text = page.model.example;
    return {
      model: page.model.name, ...given,
      ...(text && "texts" in given ? { texts: [text] } : {}), ...(text && "text" in given ? { text } : {}),
    };
  }

  function asCurl(one, body) {
    if (body !== undefined) return app.curl(one.path.slice(1), body);
    const key = app.api.hasKey() ? " \\\n  -H \"Authorization: Bearer $REGARD_API_KEY\"" : "";
    return `curl ${new URL(one.path.slice(1), document.baseURI).href}${key}`;
  }

  async function send(one, text, box) {
    const started = performance.now();
    box.replaceChildren(make("p", { class: "muted" }, regard.say("app.working")));
    try {
      const response = await app.api.raw(one.path.slice(1), one.method, text);
      const said = await response.text();
      const time = Math.round(performance.now() - started);
      let shown = said;
      try { shown = JSON.stringify(JSON.parse(said), null, 2); } catch { /* not JSON: as it is */ }
      const rest = shown.length - MOST;
      box.replaceChildren(
        make("p", { class: response.ok ? "good" : "bad", data: { status: response.status } },
          `${response.status} \u00b7 ${regard.say("app.milliseconds", { count: time })}`),
        make("pre", { tabindex: 0, dir: "auto" }, rest > 0 ? shown.slice(0, MOST) : shown),
        rest > 0 ? make("p", { class: "muted" }, regard.say("docs.more", { count: rest })) : "");
      app.announce(String(response.status));
    } catch (problem) {
      app.showError(box, problem, () => send(one, text, box));
    }
  }

  function workbench(one) {
    const given = example(one);
    const box = make("div", { data: { role: "answer" } });
    const wrong = make("p", { class: "bad note", role: "alert" });
    const curl = make("pre", { tabindex: 0, dir: "ltr", data: { role: "curl" } }, asCurl(one, given));
    const body = given === undefined ? null : make("textarea", {
      "aria-label": regard.say("docs.body"), spellcheck: "false", data: { role: "body" }, rows: 6,
      on: { input: () => {
        try {
          curl.textContent = asCurl(one, JSON.parse(body.value));
          wrong.textContent = "";
        } catch (problem) { wrong.textContent = problem.message; }
      } },
    }, JSON.stringify(given, null, 2));
    const copied = app.button("docs.copy", async () => {
      const done = await app.copyText(curl.textContent);
      copied.textContent = regard.say(done ? "app.copied" : "app.copy.hand");
    }, { class: "ghost" });
    const look = { class: "primary", data: { role: "send" } };
    const go = app.button("docs.send", () => send(one, body?.value, box), look);
    return make("div", { class: "workbench" }, body, wrong, curl,
      make("div", { class: "together" }, go, copied), box);
  }

  function route(one) {
    const schema = jsonOf(one.requestBody?.content);
    const rows = schema ? app.fieldsOf(page.api, schema) : [];
    const parameters = (one.parameters || []).map((each) => ({
      name: each.name, type: `${each.in} ${each.schema?.type || ""}`, about: each.description || "",
      needed: each.required,
    }));
    const fixed = !one.path.includes("{");
    return make("section", { class: "route", id: anchor(one), data: { route: `${one.method} ${one.path}` } },
      make("h2", {}, title(one)),
      make("div", { class: "two" },
        make("div", {},
          make("p", { class: "lead" }, one.description || one.summary || ""),
          rows.length + parameters.length ? make("h3", {}, regard.say("docs.fields")) : null,
          table([...parameters, ...rows], "fields"), responses(one)),
        fixed ? workbench(one) : null));
  }

  function draw() {
    const all = operations();
    const { title: name, version, description } = page.api.info;
    $("contents").replaceChildren(make("ul", {}, all.map((one) =>
      make("li", {}, make("a", { href: `#${anchor(one)}` }, title(one))))));
    $("routes").replaceChildren(
      make("div", { class: "opening" },
        make("h2", {}, `${name} `, make("small", { class: "muted" }, version)),
        make("p", { class: "lead" }, description || "")),
      ...all.map(route));
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  }

  async function load() {
    $("notice").replaceChildren();
    try {
      page.api = await app.api.json("openapi.json");
    } catch (problem) {
      app.showError($("notice"), problem, load);
      return;
    }
    try {
      page.model = (await app.api.json("models")).models[0];
    } catch { page.model = null; } // without a key only the plain examples
    draw();
  }

  $("key-form").addEventListener("submit", (event) => event.preventDefault());
  $("api-key").addEventListener("change", () => { app.api.setKey($("api-key").value.trim()); load(); });
  document.addEventListener("regard:language", () => { if (page.api) draw(); });
  load();
})();
