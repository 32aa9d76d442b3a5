"use strict";
// A sound as the model reads it: a player, the waveform, the features, and the time of the outputs.
(() => {
  const regard = window.regard = window.regard || {};
  const {make} = regard;
  // Colors of features from low to high, as in matplotlib's magma.
  const COLORS = [[0, 0, 4], [59, 15, 112], [140, 41, 129], [222, 73, 104], [254, 159, 109], [252, 253, 191]];
  const HEIGHT = 60; // pixels of the waveform

  const bytesOf = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));

  const colorOf = (level) => {
    const at = level / 255 * (COLORS.length - 1), low = Math.min(COLORS.length - 2, Math.floor(at));
    return COLORS[low].map((value, part) => value + (COLORS[low + 1][part] - value) * (at - low));
  };

  const paintWaveform = (canvas, waveform) => {
    canvas.width = waveform.length;
    canvas.height = HEIGHT;
    const context = canvas.getContext("2d");
    const top = waveform.reduce((most, [low, high]) => Math.max(most, -low, high), 0.01);
    context.fillStyle = getComputedStyle(canvas).color;
    waveform.forEach(([low, high], x) => {
      const from = HEIGHT / 2 * (1 - high / top), to = HEIGHT / 2 * (1 - low / top);
      context.fillRect(x, from, 1, Math.max(1, to - from));
    });
  };

  // Paint features (windows, bands): one column per window, the lowest band at the bottom.
  const paintFeatures = (canvas, {shape: [windows, bands], u8}) => {
    const flat = bytesOf(u8);
    canvas.width = windows;
    canvas.height = bands;
    const image = new ImageData(windows, bands);
    for (let x = 0; x < windows; x += 1) {
      for (let band = 0; band < bands; band += 1) {
        const cell = (bands - 1 - band) * windows + x;
        image.data.set(colorOf(flat[x * bands + band]), cell * 4);
        image.data[cell * 4 + 3] = 255;
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  };

  // Start and end of a position as fractions of the duration; several outputs may share a position.
  const span = (sound, index, per = 1) => {
    const step = sound.step * sound.stride / per;
    const middle = sound.window / 2 + (index + (1 - per) / 2) * step;
    return [middle - step / 2, middle + step / 2].map((time) => Math.min(1, Math.max(0, time / sound.seconds)));
  };

  const place = (node, [from, to]) => {
    node.style.left = `${100 * from}%`;
    node.style.width = `${100 * (to - from)}%`;
    return node;
  };

  // CTC: the frames of each token, blanks between them. Returns null if outputs are not frames.
  const frames = ({data}) => {
    const positions = data.source.tokens.length, count = data.steps.length;
    if (data.inputs.length !== count || count < positions || positions < 2 || crossOf(data)) return null;
    const per = Math.floor(count / positions), lane = make("div", {class: "sound-lane", data: {lane: "frames"}});
    for (let at = 0; at < count;) {
      let end = at + 1;
      while (end < count && data.steps[end].token === data.steps[at].token) end += 1;
      const {token} = data.steps[at];
      if (token !== "\u00b7") {
        const [from] = span(data.sound, at, per), [, to] = span(data.sound, end - 1, per);
        const best = Math.max(...data.steps.slice(at, end).map(({probability}) => probability));
        const title = regard.say("sound.token", {token: regard.plain(token), percent: Math.round(100 * best), time: (from * data.sound.seconds).toFixed(2)});
        lane.append(place(make("span", {class: "sound-token", title}, regard.plain(token)), [from, to]));
      }
      at = end;
    }
    return lane;
  };

  const crossOf = (data) => data.attention.filter(({part, columns}) => part === "cross" && columns === "source").at(-1);

  // Weights over positions for the selected output: attention, otherwise saliency.
  const weightsOf = ({data, state}) => {
    const entry = crossOf(data);
    if (entry) {
      const count = regard.numbers(entry.heads).shape[0];
      const mean = regard.mean(Array.from({length: count}, (_, index) => regard.matrix(entry.heads, index)));
      return {name: "sound.attention", row: regard.rowOf(mean, Math.min(state.step, mean.rows - 1))};
    }
    if (!data.saliency || data.saliency.columns !== "source") return null;
    const {shape, flat} = regard.numbers(data.saliency.values);
    const at = Math.min(state.step, shape[0] - 1);
    return {name: "sound.saliency", row: flat.subarray(at * shape[1], (at + 1) * shape[1])};
  };

  const paintWeights = (lane, sound, row) => {
    const top = row.reduce((most, value) => Math.max(most, value), 0) || 1;
    lane.replaceChildren(...Array.from(row, (value, index) => {
      const node = place(make("span", {class: "sound-weight"}), span(sound, index));
      node.style.opacity = value / top;
      return node;
    }));
  };

  regard.sound = (context) => {
    const {data, bus, state} = context, {sound} = data;
    const player = make("audio", {controls: true, src: `data:audio/wav;base64,${sound.wav}`, "aria-label": regard.say("sound.play")});
    const waveform = make("canvas", {class: "sound-wave", role: "img", "aria-label": regard.say("sound.waveform", {seconds: sound.seconds.toFixed(2)})});
    const [low, high] = sound.hertz;
    const features = make("canvas", {class: "sound-features", role: "img", "aria-label": regard.say("sound.features", {low, high, bands: sound.features.shape[1]})});
    const head = make("div", {class: "sound-head", "aria-hidden": "true"});
    const tokens = frames(context), lane = make("div", {class: "sound-lane", data: {lane: "weights"}});
    const says = make("p", {class: "says", "aria-live": "polite", data: {says: "sound"}});
    const track = make("div", {class: "sound-track"}, waveform, features, ...(tokens ? [tokens] : []), lane, head);
    paintFeatures(features, sound.features);
    const move = () => { head.style.left = `${100 * player.currentTime / sound.seconds}%`; };
    player.addEventListener("timeupdate", move);
    track.addEventListener("click", (event) => {
      const box = track.getBoundingClientRect();
      player.currentTime = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)) * sound.seconds;
      move();
    });
    const paint = () => {
      paintWaveform(waveform, sound.waveform);
      const found = weightsOf({data, state});
      lane.hidden = !found;
      if (!found) return;
      paintWeights(lane, sound, found.row);
      const best = found.row.reduce((most, value, index) => (value > found.row[most] ? index : most), 0);
      const time = (sound.window / 2 + best * sound.step * sound.stride).toFixed(2);
      says.textContent = regard.say("sound.most", {name: regard.say(found.name), output: regard.plain(data.steps[state.step]?.token ?? ""), time});
    };
    bus.on("choose", paint);
    bus.on("theme", paint);
    requestAnimationFrame(paint);
    return [player, track, says, make("p", {class: "note"}, regard.say("sound.key"))];
  };
})();
