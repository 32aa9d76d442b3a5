"use strict";
// Layout of the search tree: from left to right, or from top to bottom if that is too wide.
(() => {
  const regard = window.regard = window.regard || {};
  const ROW = 29, GAP = 34;
  const LEVEL = 38, NODE_GAP = 7; // of trees that grow from top to bottom
  const READABLE = 0.8; // the smallest scale

  // From left to right, compact by contours: each child is as close to the previous one as possible.
  // Return the size of the tree.
  const placeAcross = (all) => {
    for (const node of [...all].reverse()) {
      node.bottom = [0];
      node.children.forEach((child, nth) => {
        let down = 0;
        if (nth) {
          child.bottom.forEach((_, depth) => {
            if (depth + 1 < node.bottom.length) down = Math.max(down, node.bottom[depth + 1] + 1);
          });
        }
        child.down = down;
        child.bottom.forEach((bottom, depth) => { node.bottom[depth + 1] = down + bottom; });
      });
    }
    const columns = [];
    for (const node of all) {
      node.row = node.parent && node.id !== null ? node.parent.row + node.down : 0;
      columns[node.depth] = Math.max(columns[node.depth] || 0, node.width);
    }
    let x = 4;
    const lefts = columns.map((width) => { const left = x; x += width + GAP; return left; });
    for (const node of all) { node.x = lefts[node.depth]; node.y = node.row * ROW + ROW / 2 + 2; }
    return {width: x - GAP + 6, height: (Math.max(...all.map((node) => node.row)) + 1) * ROW + 4};
  };

  const needed = (nodes) => nodes.reduce((sum, node) => sum + node.width + NODE_GAP, -NODE_GAP);

  // Return the nodes of a level as lines of at most this width.
  const splitLevel = (nodes, limit) => {
    const lines = [[]];
    for (const node of nodes) {
      if (lines.at(-1).length && needed([...lines.at(-1), node]) > limit) lines.push([]);
      lines.at(-1).push(node);
    }
    return lines;
  };

  // From top to bottom, as wide as the widest line: nodes are below their parents if there is room.
  const placeDown = ([root], limit) => {
    const lines = [];
    let y = ROW / 2 + 2;
    for (let level = [root]; level.length; level = level.flatMap((node) => node.children)) {
      for (const nodes of splitLevel(level, limit)) { lines.push({nodes, y}); y += ROW; }
      y += LEVEL - ROW;
    }
    const width = Math.max(...lines.map((line) => needed(line.nodes)));
    for (const {nodes, y: own} of lines) {
      let left = 4, rest = needed(nodes); // the end of the previous node, the width of the others
      for (const node of nodes) {
        node.x = Math.min(Math.max(left, node.parent ? node.parent.x : 0), 4 + width - rest);
        node.y = own;
        left = node.x + node.width + NODE_GAP;
        rest -= node.width + NODE_GAP;
      }
    }
    return {width: width + 8, height: y - LEVEL + ROW / 2 + 2, down: true};
  };

  // Place the nodes so that the tree fits into a width; return its size and scale.
  regard.layOutTree = (all, room) => {
    let size = placeAcross(all);
    if (size.width * READABLE > room) size = placeDown(all, room / READABLE - 8);
    return {...size, scale: Math.max(READABLE, Math.min(1, room / size.width))};
  };
})();
