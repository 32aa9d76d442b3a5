// Differences between two texts: the longest common subsequence of their words or characters.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const MAX_CELLS = 4_000_000; // of the table; longer texts are marked as entirely different

  // Returns words with their leading spaces; for a text without spaces, grapheme clusters.
  app.splitUnits = (text) => {
    if (/\s/.test(text.trim())) return text.match(/\s*\S+/g) || [];
    if (!window.Intl?.Segmenter) return [...text];
    const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
    return [...segmenter.segment(text)].map((one) => one.segment);
  };

  // Returns, for each item of two lists, whether it is in their longest common subsequence.
  app.commonItems = (one, two) => {
    const common = [one.map(() => false), two.map(() => false)];
    if (one.length * two.length > MAX_CELLS) return common;
    const width = two.length + 1;
    const table = new Uint32Array((one.length + 1) * width);
    for (let i = one.length - 1; i >= 0; i--) {
      for (let j = two.length - 1; j >= 0; j--) {
        table[i * width + j] = one[i] === two[j]
          ? table[(i + 1) * width + j + 1] + 1
          : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
      }
    }
    for (let i = 0, j = 0; i < one.length && j < two.length;) {
      if (one[i] === two[j]) common[0][i++] = common[1][j++] = true;
      else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
      else j++;
    }
    return common;
  };

  // Returns the nodes of a text; units that another text lacks are in a <mark>.
  app.markDifferences = (text, other) => {
    const [units, otherUnits] = [app.splitUnits(text), app.splitUnits(other)];
    const trim = (parts) => parts.map((part) => part.trim());
    const [common] = app.commonItems(trim(units), trim(otherUnits));
    return units.flatMap((unit, index) => {
      if (common[index]) return [unit];
      const space = unit.match(/^\s*/)[0];
      return [space, regard.make("mark", { class: "differs" }, unit.slice(space.length))];
    });
  };

  // Returns a sentence about the difference of two predictions.
  app.describeDifference = (one, two) => {
    if (one.text === two.text) return regard.say("app.same");
    if (typeof one.value === "number" && typeof two.value === "number") {
      return regard.say("app.differs.number", { value: regard.number(Math.abs(one.value - two.value), 4) });
    }
    const [a, b] = [one, two].map(({ text }) => app.splitUnits(text).map((unit) => unit.trim()));
    const [common] = app.commonItems(a, b);
    const all = Math.max(a.length, b.length);
    const hasWords = /\s/.test(`${one.text.trim()}${two.text.trim()}`);
    const values = { count: all - common.filter(Boolean).length, all };
    return regard.say(hasWords ? "app.differs.words" : "app.differs.characters", values);
  };

  // Restricts the second pane to the models of the task of the first one.
  app.matchTasks = (models, [first, second]) => {
    second.models = models.filter(({ task, reads }) => task === first.model.task && reads?.kind === first.model.reads?.kind);
    if (second.model) return second.draw();
    const other = second.models.find((model) => model !== first.model) || first.model;
    return second.set(second.defaults(other.name));
  };
})();
