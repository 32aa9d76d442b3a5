// What differs between two texts: the longest common subsequence of their words or characters.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const MOST = 4_000_000; // cells of the table; longer texts are compared as a whole

  // Words with the spaces before them; where there are no spaces, characters as readers see them.
  app.cut = (text) => {
    if (/\s/.test(text.trim())) return text.match(/\s*\S+/g) || [];
    if (!window.Intl?.Segmenter) return [...text];
    const cutter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
    return [...cutter.segment(text)].map((one) => one.segment);
  };

  // For each of two lists: whether each of its things is part of what both have.
  app.shared = (one, two) => {
    const keep = [one.map(() => false), two.map(() => false)];
    if (one.length * two.length > MOST) return keep;
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
      if (one[i] === two[j]) keep[0][i++] = keep[1][j++] = true;
      else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
      else j++;
    }
    return keep;
  };

  // The text in an element, what the other text lacks in a mark.
  app.marked = (text, other) => {
    const [mine, theirs] = [app.cut(text), app.cut(other)];
    const trim = (parts) => parts.map((part) => part.trim());
    const [keep] = app.shared(trim(mine), trim(theirs));
    return mine.flatMap((part, place) => {
      if (keep[place]) return [part];
      const space = part.match(/^\s*/)[0];
      return [space, regard.make("mark", { class: "differs" }, part.slice(space.length))];
    });
  };

  // In a sentence how much two answers differ: by a number, or by so many words or characters.
  app.difference = (one, two) => {
    if (one.text === two.text) return regard.say("app.same");
    if (typeof one.value === "number" && typeof two.value === "number") {
      return regard.say("app.differs.number", { value: regard.number(Math.abs(one.value - two.value), 4) });
    }
    const [a, b] = [one, two].map((answer) => app.cut(answer.text).map((part) => part.trim()));
    const [keep] = app.shared(a, b);
    const all = Math.max(a.length, b.length);
    const words = /\s/.test(`${one.text.trim()}${two.text.trim()}`);
    const values = { count: all - keep.filter(Boolean).length, all };
    return regard.say(words ? "app.differs.words" : "app.differs.characters", values);
  };
})();
