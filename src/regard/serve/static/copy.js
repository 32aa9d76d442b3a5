// Copies of a request: a link, curl, Python with the standard library, Python with regard.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);

  // Quotes a text for a POSIX shell.
  app.shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

  // Returns a value as a Python literal. JSON escapes are valid in Python; control characters and
  // lone surrogates are escaped, since terminals and files may not preserve them.
  app.pythonLiteral = (value) => {
    if (value === null || value === undefined) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (typeof value === "string") return literal(value);
    if (Array.isArray(value)) return `[${value.map(app.pythonLiteral).join(", ")}]`;
    if (typeof value === "object") {
      const pairs = Object.entries(value).map(([key, one]) => `${literal(key)}: ${app.pythonLiteral(one)}`);
      return `{${pairs.join(", ")}}`;
    }
    return String(value);
  };
  const escapeControls = (text) => text.replace(/[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const literal = (text) => escapeControls(JSON.stringify(text));

  const absoluteUrl = (path) => new URL(path, document.baseURI).href;

  app.curlCommand = (path, body) => [
    `curl ${app.shellQuote(absoluteUrl(path))}`,
    ...(app.api.hasKey() ? ["-H \"Authorization: Bearer $REGARD_API_KEY\""] : []),
    "-H 'Content-Type: application/json'",
    `-d ${app.shellQuote(escapeControls(JSON.stringify(body)))}`,
  ].join(" \\\n  ");

  app.urllibCode = (path, body) => {
    const key = app.api.hasKey();
    const bearer = key ? ', "Authorization": "Bearer " + os.environ["REGARD_API_KEY"]' : "";
    return `import json
${key ? "import os\n" : ""}import urllib.request

body = ${app.pythonLiteral(body)}
request = urllib.request.Request(
    ${literal(absoluteUrl(path))},
    data=json.dumps(body).encode(),
    headers={"Content-Type": "application/json"${bearer}},
)
with urllib.request.urlopen(request) as response:
    for prediction in json.load(response)["predictions"]:
        print(prediction["text"])
`;
  };

  // Returns a keyword argument. A key may come from a link, so it may be no valid name.
  const keyword = (key, value) => (/^[A-Za-z_]\w*$/.test(key)
    ? `${key}=${app.pythonLiteral(value)}` : `**{${literal(key)}: ${app.pythonLiteral(value)}}`);

  app.regardCode = (body) => {
    const constraints = body.constraints?.[0];
    const repeat = body.texts.length > 1 ? ` * ${body.texts.length}` : "";
    const tuple = (values) => `(${values.map((one) => `${app.pythonLiteral(one)},`).join(" ")})`;
    const fields = Object.entries(constraints || {}).map(([key, value]) =>
      `${key}=${Array.isArray(value) ? tuple(value) : app.pythonLiteral(value)}`);
    const args = [
      app.pythonLiteral(body.texts),
      ...(body.nbest ? [`nbest=${body.nbest}`] : []),
      ...(constraints ? [`constraints=[regard.Constraints(${fields.join(", ")})]${repeat}`] : []),
      ...Object.entries(body.search || {}).map(([key, value]) => keyword(key, value)),
    ];
    return `import regard

model = regard.load(${literal(body.model)})  # the run folder
for prediction in model.predict_detailed(${args.join(", ")}):
    print(prediction.text)
`;
  };

  // Copies a text to the clipboard; returns false if the browser blocks it.
  app.copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { return false; }
  };

  // What can be copied of the results of panes, for copyButtons. fragment: () => that of a link.
  app.copyFormats = (text, panes, fragment) => {
    const each = (write) => () => panes
      .map((pane) => write(app.predictRequest(text, pane.value, pane.model))).join("\n");
    const texts = () => panes.map((pane) => pane.result?.prediction.text ?? "").join("\n");
    const link = () => new URL(fragment(), location.href).href;
    const reads = app.readsFiles(panes[0].model);
    return [
      ["text", regard.say("app.copy.text"), texts],
      ...(reads ? [] : [["link", regard.say("app.copy.link"), link]]),
      ["curl", "curl", each((body) => `${app.curlCommand("predict", body)}\n`)],
      ["python", "Python (urllib)", each((body) => app.urllibCode("predict", body))],
      ...(reads ? [] : [["regard", "Python (regard)", each(app.regardCode)]]),
    ];
  };

  // Buttons that copy a text and show it. getFormats returns [[name, label, () => text]].
  app.copyButtons = (element, getFormats) => {
    const box = make("div", { class: "copied" });
    const status = make("span", { class: "muted", role: "status" });
    const copy = async (name, button) => {
      const isOpen = button.getAttribute("aria-pressed") === "true";
      for (const one of buttons) one.setAttribute("aria-pressed", "false");
      box.replaceChildren();
      status.textContent = "";
      if (isOpen) return;
      button.setAttribute("aria-pressed", "true");
      const text = getFormats().find(([one]) => one === name)[2]();
      const code = make("pre", { tabindex: 0, dir: "ltr", data: { role: "code" } }, text);
      box.replaceChildren(code);
      const copied = await app.copyText(text);
      status.textContent = regard.say(copied ? "app.copied" : "app.copy.manual");
      if (!copied) getSelection().selectAllChildren(code);
    };
    const buttons = getFormats().map(([name, label]) => make("button", {
      type: "button", "aria-pressed": "false", data: { copy: name },
      on: { click: (event) => copy(name, event.currentTarget) },
    }, label));
    const lead = make("span", { class: "muted" }, regard.say("app.copy"));
    element.replaceChildren(make("div", { class: "toolbar" }, lead, buttons, status), box);
  };
})();
