// The same answer elsewhere: a link, curl, Python with nothing installed, Python with regard.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);

  // One word of a POSIX shell: nothing within single quotes has a meaning but the quote itself.
  app.shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

  // A value as Python writes it. JSON's escapes are Python's; control characters and half
  // characters are escaped, since a terminal or a file might not carry them.
  app.python = (value) => {
    if (value === null || value === undefined) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (typeof value === "string") return literal(value);
    if (Array.isArray(value)) return `[${value.map(app.python).join(", ")}]`;
    if (typeof value === "object") {
      const pairs = Object.entries(value).map(([key, one]) => `${literal(key)}: ${app.python(one)}`);
      return `{${pairs.join(", ")}}`;
    }
    return String(value);
  };
  const escaped = (text) => text.replace(/[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const literal = (text) => escaped(JSON.stringify(text));

  const address = (path) => new URL(path, document.baseURI).href;

  app.curl = (path, body) => [
    `curl ${address(path)}`,
    ...(app.api.hasKey() ? ["-H \"Authorization: Bearer $REGARD_API_KEY\""] : []),
    "-H 'Content-Type: application/json'",
    `-d ${app.shell(escaped(JSON.stringify(body)))}`,
  ].join(" \\\n  ");

  app.urllib = (path, body) => {
    const key = app.api.hasKey();
    const bearer = key ? ', "Authorization": "Bearer " + os.environ["REGARD_API_KEY"]' : "";
    return `import json
${key ? "import os\n" : ""}import urllib.request

body = ${app.python(body)}
request = urllib.request.Request(
    ${literal(address(path))},
    data=json.dumps(body).encode(),
    headers={"Content-Type": "application/json"${bearer}},
)
with urllib.request.urlopen(request) as response:
    for prediction in json.load(response)["predictions"]:
        print(prediction["text"])
`;
  };

  app.ownPython = (body) => {
    const request = body.constraints?.[0];
    const tuple = (values) => `(${values.map((one) => `${app.python(one)},`).join(" ")})`;
    const wish = Object.entries(request || {}).map(([key, value]) =>
      `${key}=${Array.isArray(value) ? tuple(value) : app.python(value)}`);
    const given = [
      app.python(body.texts),
      ...(body.nbest ? [`nbest=${body.nbest}`] : []),
      ...(request ? [`constraints=[regard.Constraints(${wish.join(", ")})]`] : []),
      ...Object.entries(body.search || {}).map(([key, value]) => `${key}=${app.python(value)}`),
    ];
    return `import regard

model = regard.load(${literal(body.model)})  # the folder of the model
for prediction in model.predict_detailed(${given.join(", ")}):
    print(prediction.text)
`;
  };

  // Puts a text on the clipboard; false where the browser does not let us.
  app.copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { return false; }
  };

  // Buttons that copy, and show what was copied. ways: [[name, label, () => text]].
  app.copies = (element, ways) => {
    const box = make("div", { class: "copied" });
    const said = make("span", { class: "muted", role: "status" });
    const copy = async (name, button) => {
      const open = button.getAttribute("aria-pressed") === "true";
      for (const one of buttons) one.setAttribute("aria-pressed", "false");
      box.replaceChildren();
      said.textContent = "";
      if (open) return;
      button.setAttribute("aria-pressed", "true");
      const text = ways().find(([one]) => one === name)[2]();
      const code = make("pre", { tabindex: 0, dir: "ltr", data: { role: "code" } }, text);
      box.replaceChildren(code);
      const copied = await app.copyText(text);
      said.textContent = regard.say(copied ? "app.copied" : "app.copy.hand");
      if (!copied) getSelection().selectAllChildren(code);
    };
    const buttons = ways().map(([name, label]) => make("button", {
      type: "button", "aria-pressed": "false", data: { copy: name },
      on: { click: (event) => copy(name, event.currentTarget) },
    }, label));
    const lead = make("span", { class: "muted" }, regard.say("app.copy"));
    element.replaceChildren(make("div", { class: "together" }, lead, buttons, said), box);
  };
})();
