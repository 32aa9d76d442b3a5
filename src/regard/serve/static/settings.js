// The settings of a search as a form, drawn from the JSON schema that the server gives.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const LIMITS = ["min_length", "max_length", "no_repeat_ngram"]; // carried over when the kind of search changes

  function resolved(schema, node) {
    if (!node.$ref) return node;
    return schema.$defs[node.$ref.split("/").pop()];
  }

  // The kinds of search by name; a schema without a choice is the only kind.
  function kinds(model) {
    const schema = model.settings || {};
    const choices = schema.oneOf || schema.anyOf || [schema];
    return new Map(choices.map((choice) => {
      const one = resolved(schema, choice);
      return [one.properties?.kind?.const ?? model.search.kind, one];
    }));
  }

  // What a search of this kind has if nothing is changed: the model's own, or the defaults.
  function own(model, kind) {
    if (kind === model.search.kind) return model.search;
    const properties = kinds(model).get(kind).properties;
    const values = Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, field.default ?? null]));
    for (const name of LIMITS) {
      if (name in properties && model.search[name]) values[name] = model.search[name];
    }
    return values;
  }

  // The type, the bounds and whether nothing is a value, of a field of the schema.
  function shape(schema, field) {
    const choices = (field.anyOf || [field]).map((one) => resolved(schema, one));
    const main = choices.find((one) => one.type !== "null") || {};
    return { ...main, empty: choices.some((one) => one.type === "null") };
  }

  function numberInput(form, value) {
    const whole = form.type === "integer";
    const inner = (bound, step) => (bound === undefined || !whole ? bound : bound + step);
    return regard.make("input", {
      type: "number", inputmode: whole ? "numeric" : "decimal", step: whole ? 1 : "any",
      min: form.minimum ?? inner(form.exclusiveMinimum, 1), max: form.maximum ?? inner(form.exclusiveMaximum, -1),
      required: !form.empty, placeholder: form.empty ? regard.say("app.settings.auto") : null,
      value: value ?? "",
    });
  }

  function input(form, value) {
    const option = (one) => regard.make("option", { value: one, selected: one === value }, one);
    if (form.enum) return regard.make("select", {}, form.enum.map(option));
    if (form.type === "boolean") return regard.make("input", { type: "checkbox", checked: value === true });
    if (form.type === "integer" || form.type === "number") return numberInput(form, value);
    return regard.make("input", { type: "text", value: value ?? "", dir: "auto" });
  }

  function read(form, node) {
    if (form.type === "boolean") return node.checked;
    if (node.type === "number") return node.value === "" ? null : Number(node.value);
    return node.value === "" && form.empty ? null : node.value;
  }

  // A label, its field and what it means.
  app.field = (name, node, about) => {
    node.id = regard.fresh(name);
    node.dataset.setting = name;
    if (about) node.setAttribute("aria-describedby", `${node.id}-about`);
    return regard.make("div", { class: "field" },
      regard.make("label", { for: node.id }, name.replaceAll("_", " ")), node,
      about ? regard.make("small", { id: `${node.id}-about` }, about) : null);
  };

  function kindField(model, kind, choose) {
    const names = [...kinds(model).keys()];
    if (names.length < 2) return null;
    const node = regard.make("select", { on: { change: () => choose(node.value) } },
      names.map((one) => regard.make("option", { value: one, selected: one === kind }, one)));
    return app.field("kind", node, (kinds(model).get(kind).description || "").split("\n")[0]);
  }

  // A form for the search of a model. changed: what differs from the model's own settings;
  // react is called with what differs whenever it changes.
  app.settings = (model, changed, react) => {
    const element = regard.make("div", { class: "fields" });
    let values = { ...changed };

    function change(name, form, node, wrapper) {
      if (!node.checkValidity()) {
        node.reportValidity();
        return;
      }
      const value = read(form, node);
      if (value === own(model, values.kind ?? model.search.kind)[name]) delete values[name];
      else values[name] = value;
      wrapper.classList.toggle("changed", name in values);
      react({ ...values });
    }

    function draw() {
      const kind = values.kind ?? model.search.kind;
      const schema = kinds(model).get(kind);
      const mine = { ...own(model, kind), ...values };
      const all = Object.entries(schema?.properties || {}).filter(([name]) => name !== "kind");
      const fields = all.map(([name, field]) => {
        const form = shape(model.settings, field);
        const node = input(form, mine[name]);
        const wrapper = app.field(name, node, field.description);
        wrapper.classList.toggle("changed", name in values);
        node.addEventListener("change", () => change(name, form, node, wrapper));
        return wrapper;
      });
      const choice = kindField(model, kind, (next) => {
        values = next === model.search.kind ? {} : { kind: next };
        draw();
        element.querySelector("[data-setting=kind]").focus();
        react({ ...values });
      });
      choice?.classList.toggle("changed", "kind" in values);
      element.replaceChildren(...[choice, ...fields].filter(Boolean));
    }

    draw();
    return { element, set(next) { values = { ...next }; draw(); } };
  };
})();
