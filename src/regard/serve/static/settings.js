// Search settings as a form, generated from the JSON schema of the server.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const LIMITS = ["min_length", "max_length", "no_repeat_ngram"]; // kept when the kind of search changes

  function resolve(schema, node) {
    if (!node.$ref) return node;
    return schema.$defs[node.$ref.split("/").pop()];
  }

  // Returns the schemas by kind of search; a schema without a choice is the only kind.
  function kinds(model) {
    const schema = model.settings || {};
    const choices = schema.oneOf || schema.anyOf || [schema];
    return new Map(choices.map((choice) => {
      const one = resolve(schema, choice);
      return [one.properties?.kind?.const ?? model.search.kind, one];
    }));
  }

  // Returns the defaults of a kind of search: the model's own settings, or those of the schema.
  function defaults(model, kind) {
    if (kind === model.search.kind) return model.search;
    const { properties } = kinds(model).get(kind);
    const values = Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, field.default ?? null]));
    for (const name of LIMITS) {
      if (name in properties && model.search[name]) values[name] = model.search[name];
    }
    return values;
  }

  // Returns the type and bounds of a field, and whether it is nullable.
  function fieldType(schema, field) {
    const choices = (field.anyOf || [field]).map((one) => resolve(schema, one));
    const main = choices.find((one) => one.type !== "null") || {};
    return { ...main, nullable: choices.some((one) => one.type === "null") };
  }

  function numberInput(type, value) {
    const isInteger = type.type === "integer";
    const inclusive = (bound, step) => (bound === undefined || !isInteger ? bound : bound + step);
    return regard.make("input", {
      type: "number", inputmode: isInteger ? "numeric" : "decimal", step: isInteger ? 1 : "any",
      min: type.minimum ?? inclusive(type.exclusiveMinimum, 1),
      max: type.maximum ?? inclusive(type.exclusiveMaximum, -1),
      required: !type.nullable, placeholder: type.nullable ? regard.say("app.settings.auto") : null,
      value: value ?? "",
    });
  }

  function input(type, value) {
    const option = (one) => regard.make("option", { value: one, selected: one === value }, one);
    if (type.enum) return regard.make("select", {}, type.enum.map(option));
    if (type.type === "boolean") return regard.make("input", { type: "checkbox", checked: value === true });
    if (type.type === "integer" || type.type === "number") return numberInput(type, value);
    return regard.make("input", { type: "text", value: value ?? "", dir: "auto" });
  }

  function readValue(type, node) {
    if (type.type === "boolean") return node.checked;
    if (node.type === "number") return node.value === "" ? null : Number(node.value);
    return node.value === "" && type.nullable ? null : node.value;
  }

  // Returns an input with its label and description.
  app.field = (name, node, about) => {
    node.id = regard.fresh(name);
    node.dataset.setting = name;
    if (about) node.setAttribute("aria-describedby", `${node.id}-about`);
    return regard.make("div", { class: "field" },
      regard.make("label", { for: node.id }, name.replaceAll("_", " ")), node,
      about ? regard.make("small", { id: `${node.id}-about` }, about) : null);
  };

  function kindField(model, kind, onSelect) {
    const names = [...kinds(model).keys()];
    if (names.length < 2) return null;
    const node = regard.make("select", { on: { change: () => onSelect(node.value) } },
      names.map((one) => regard.make("option", { value: one, selected: one === kind }, one)));
    return app.field("kind", node, (kinds(model).get(kind).description || "").split("\n")[0]);
  }

  // A form for the search settings of a model. changes: the settings that differ from the model's
  // own; onChange gets them whenever they change.
  app.settings = (model, changes, onChange) => {
    const element = regard.make("div", { class: "fields" });
    let values = { ...changes };

    function update(name, type, node, wrapper) {
      if (!node.checkValidity()) {
        node.reportValidity();
        return;
      }
      const value = readValue(type, node);
      if (value === defaults(model, values.kind ?? model.search.kind)[name]) delete values[name];
      else values[name] = value;
      wrapper.classList.toggle("changed", name in values);
      onChange({ ...values });
    }

    function draw() {
      const kind = values.kind ?? model.search.kind;
      const schema = kinds(model).get(kind);
      const current = { ...defaults(model, kind), ...values };
      const properties = Object.entries(schema?.properties || {}).filter(([name]) => name !== "kind");
      const fields = properties.map(([name, field]) => {
        const type = fieldType(model.settings, field);
        const node = input(type, current[name]);
        const wrapper = app.field(name, node, field.description);
        wrapper.classList.toggle("changed", name in values);
        node.addEventListener("change", () => update(name, type, node, wrapper));
        return wrapper;
      });
      const kindSelect = kindField(model, kind, (next) => {
        values = next === model.search.kind ? {} : { kind: next };
        draw();
        element.querySelector("[data-setting=kind]").focus();
        onChange({ ...values });
      });
      kindSelect?.classList.toggle("changed", "kind" in values);
      element.replaceChildren(...[kindSelect, ...fields].filter(Boolean));
    }

    draw();
    return { element };
  };
})();
