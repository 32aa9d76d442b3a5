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
    return [...new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text)].map((one) => one.segment);
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

  // How many of the things of the longer text are not in both.
  app.distance = (one, two) => {
    const [a, b] = [one, two].map((text) => app.cut(text).map((part) => part.trim()));
    const [keep] = app.shared(a, b);
    const all = Math.max(a.length, b.length);
    return { count: all - keep.filter(Boolean).length, all };
  };
})();
