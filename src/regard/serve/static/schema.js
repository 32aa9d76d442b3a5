// JSON schemas of OpenAPI: table rows for the docs, and example values.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const MAX_DEPTH = 4; // levels of nested fields that are listed

  function resolve(api, schema) {
    if (!schema?.$ref) return schema || {};
    return schema.$ref.split("/").slice(1).reduce((node, key) => node?.[key], api) || {};
  }

  function choices(api, schema) {
    const nested = schema.anyOf || schema.oneOf;
    return nested ? nested.flatMap((one) => choices(api, resolve(api, one))) : [schema];
  }

  function bounds(one) {
    const low = one.minimum ?? one.minLength ?? one.minItems;
    const high = one.maximum ?? one.maxLength ?? one.maxItems;
    return [
      one.exclusiveMinimum !== undefined ? `> ${one.exclusiveMinimum}` : null,
      low !== undefined && low > -1e15 ? `\u2265 ${low}` : null,
      high !== undefined ? `\u2264 ${high}` : null,
    ].filter(Boolean).join(", ");
  }

  function typeName(api, node) {
    const names = choices(api, resolve(api, node)).map((one) => {
      if (one.const !== undefined) return JSON.stringify(one.const);
      if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" | ");
      if (one.type === "array") return `[${typeName(api, one.items || {})}]`;
      const limit = bounds(one);
      return `${one.type || "any"}${limit ? ` ${limit}` : ""}`;
    });
    return [...new Set(names)].sort((a, b) => (a === "null") - (b === "null")).join(" | "); // null last
  }

  // Returns the fields of an object and of nested objects as {name, type, about, required, default}.
  app.schemaFields = (api, node, parent = "", depth = 0) => {
    const schema = resolve(api, node);
    const required = new Set(schema.required || []);
    return Object.entries(schema.properties || {}).flatMap(([name, field]) => {
      const type = resolve(api, field);
      const described = [field, type, ...choices(api, type)].find((one) => one.description);
      const row = {
        name: parent + name, type: typeName(api, type), about: described?.description || "",
        required: required.has(name), default: type.default,
      };
      const inner = choices(api, type).flatMap((one) => (one.type === "array"
        ? choices(api, resolve(api, one.items)).map((item) => [item, `${parent}${name}[].`])
        : [[one, `${parent}${name}.`]]));
      if (depth === MAX_DEPTH) return [row];
      return [row, ...inner.flatMap(([one, path]) => app.schemaFields(api, one, path, depth + 1))];
    });
  };

  // Returns a value that matches a schema: its example, its default, or the simplest value.
  app.schemaExample = (api, node, depth = 0) => {
    const schema = resolve(api, node);
    if (schema.examples?.length) return schema.examples[0];
    if (schema.example !== undefined) return schema.example;
    if (schema.default !== undefined) return schema.default;
    const first = choices(api, schema).find((one) => one.type !== "null") || {};
    if (first.enum) return first.enum[0];
    if (first.const !== undefined) return first.const;
    if (first.properties && depth < MAX_DEPTH) {
      const required = new Set(first.required || []);
      const shown = Object.entries(first.properties)
        .filter(([name, field]) => required.has(name) || resolve(api, field).examples);
      return Object.fromEntries(shown.map(([name, field]) => [name, app.schemaExample(api, field, depth + 1)]));
    }
    const minimum = first.minimum ?? 1;
    const simplest = { string: "", integer: minimum, number: minimum, boolean: false, array: [], object: {} };
    return simplest[first.type] ?? null;
  };
})();
