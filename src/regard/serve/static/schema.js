// JSON schemas of an OpenAPI description: as rows to read, and as an example to send.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const DEEP = 4; // levels of fields within fields that are listed

  function resolved(api, schema) {
    if (!schema?.$ref) return schema || {};
    return schema.$ref.split("/").slice(1).reduce((node, key) => node?.[key], api) || {};
  }

  const choices = (api, schema) =>
    (schema.anyOf || schema.oneOf || [schema]).map((one) => resolved(api, one));

  function bounds(one) {
    const low = one.minimum ?? one.minLength ?? one.minItems;
    const high = one.maximum ?? one.maxLength ?? one.maxItems;
    return [
      one.exclusiveMinimum !== undefined ? `> ${one.exclusiveMinimum}` : null,
      low !== undefined && low > -1e15 ? `\u2265 ${low}` : null,
      high !== undefined ? `\u2264 ${high}` : null,
    ].filter(Boolean).join(", ");
  }

  function typeName(api, given) {
    const names = choices(api, resolved(api, given)).map((one) => {
      if (one.const !== undefined) return JSON.stringify(one.const);
      if (one.enum) return one.enum.map((value) => JSON.stringify(value)).join(" | ");
      if (one.type === "array") return `[${typeName(api, one.items || {})}]`;
      const limit = bounds(one);
      return `${one.type || "any"}${limit ? ` ${limit}` : ""}`;
    });
    return [...new Set(names)].sort((a, b) => (a === "null") - (b === "null")).join(" | "); // null last
  }

  // The fields of an object, those of objects within it below them, as {name, type, about, ...}.
  app.fieldsOf = (api, given, before = "", depth = 0) => {
    const schema = resolved(api, given);
    const needed = new Set(schema.required || []);
    return Object.entries(schema.properties || {}).flatMap(([name, field]) => {
      const whole = resolved(api, field);
      const described = [field, whole, ...choices(api, whole)].find((one) => one.description);
      const row = {
        name: before + name, type: typeName(api, whole), about: described?.description || "",
        needed: needed.has(name), usual: whole.default,
      };
      const inner = choices(api, whole).flatMap((one) => (one.type === "array"
        ? choices(api, resolved(api, one.items)).map((item) => [item, `${before}${name}[].`])
        : [[one, `${before}${name}.`]]));
      if (depth === DEEP) return [row];
      return [row, ...inner.flatMap(([one, path]) => app.fieldsOf(api, one, path, depth + 1))];
    });
  };

  // A value that fits a schema: its example, its default, or the simplest one.
  app.exampleOf = (api, given, depth = 0) => {
    const schema = resolved(api, given);
    if (schema.examples?.length) return schema.examples[0];
    if (schema.example !== undefined) return schema.example;
    if (schema.default !== undefined) return schema.default;
    const first = choices(api, schema).find((one) => one.type !== "null") || {};
    if (first.enum) return first.enum[0];
    if (first.const !== undefined) return first.const;
    if (first.properties && depth < DEEP) {
      const needed = new Set(first.required || []);
      const shown = Object.entries(first.properties)
        .filter(([name, field]) => needed.has(name) || resolved(api, field).examples);
      return Object.fromEntries(shown.map(([name, field]) => [name, app.exampleOf(api, field, depth + 1)]));
    }
    const least = first.minimum ?? 1;
    const simple = { string: "", integer: least, number: least, boolean: false, array: [], object: {} };
    return simple[first.type] ?? null;
  };
})();
