// The input of models that read files: an image that is dropped, chosen, pasted or drawn. Images are
// converted to what the model reads; a name stands for the file wherever a text would.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const MAX_KEPT = 20; // files, for the history of this visit
  const PEN = 280; // pixels of the canvas for drawing
  const files = new Map(); // name → {file, image}; image: a canvas or bitmap, null for other files

  app.readsFiles = (model) => Boolean(model.reads?.media?.length);
  app.fileKind = (model) => (app.isSoundModel(model) ? "sound" : "files"); // in keys of words
  const isImageModel = (model) => model.reads?.height > 0;

  function toBase64(bytes) {
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    return btoa(text);
  }

  // Returns an image at the size that a model reads, on white, as {width, height, data} (RGBA).
  function convert(image, { height, width }) {
    const canvas = make("canvas", { width, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.fillStyle = "#fff";
    context.fillRect(0, 0, width, height);
    context.imageSmoothingEnabled = image.width !== width || image.height !== height;
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, width, height);
    return context.getImageData(0, 0, width, height);
  }

  // Returns an image as a PPM file (RGB) or a PGM file (grayscale, ITU-R 601 as in Pillow).
  function encodePixels({ width, height, data }, channels) {
    const isGray = channels < 3;
    const header = new TextEncoder().encode(`${isGray ? "P5" : "P6"} ${width} ${height} 255\n`);
    const bytes = new Uint8Array(header.length + width * height * (isGray ? 1 : 3));
    bytes.set(header);
    for (let cell = 0, at = header.length; cell < width * height; cell += 1) {
      const [red, green, blue] = data.subarray(cell * 4, cell * 4 + 3);
      if (isGray) bytes[at++] = (red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16;
      else for (const value of [red, green, blue]) bytes[at++] = value;
    }
    return { data: toBase64(bytes), type: "image/x-portable-anymap" };
  }

  // Returns the named file for a request to a model; undefined if it is not there any more.
  app.fileFor = (name, model) => {
    const found = files.get(name);
    if (!found) return undefined;
    if (!isImageModel(model) || !found.image) return { data: found.data, type: found.file.type };
    found.encoded ??= new Map();
    const { height, width, channels } = model.reads;
    const key = `${height} ${width} ${channels}`;
    if (!found.encoded.has(key)) found.encoded.set(key, encodePixels(convert(found.image, model.reads), channels));
    return found.encoded.get(key);
  };

  // Returns the source of a request for one prediction: {text} or {input}.
  app.sourceFields = (text, model) => (app.readsFiles(model) ? { input: app.fileFor(text, model) } : { text });

  app.hasFile = (name) => files.has(name);

  function keep(name, entry) {
    files.delete(name);
    files.set(name, entry);
    if (files.size > MAX_KEPT) files.delete(files.keys().next().value);
  }

  // The input area. onInput(name) is called with the name of a new file.
  class FileInput {
    constructor(element, onInput) {
      Object.assign(this, { element, onInput, name: "", drawings: 0 });
      this.chooser = make("input", {
        type: "file", id: "file", class: "unseen", on: { change: () => this.take(this.chooser.files[0]) },
      });
      element.addEventListener("dragover", (event) => {
        event.preventDefault();
        element.classList.add("over");
      });
      for (const end of ["dragleave", "drop"]) element.addEventListener(end, () => element.classList.remove("over"));
      element.addEventListener("drop", (event) => {
        event.preventDefault();
        this.takeFirst(event.dataTransfer.files);
      });
      document.addEventListener("paste", (event) => {
        if (!element.hidden) this.takeFirst(event.clipboardData?.files || []);
      });
    }

    // Shows or hides the area for a model, and redraws it for another language.
    show(model) {
      this.element.hidden = !app.readsFiles(model);
      if (this.element.hidden) return;
      this.model = model;
      this.chooser.accept = model.reads.media.join(",");
      this.preview = make("canvas", { role: "img", id: "preview", "aria-label": regard.say("app.file.preview"), hidden: true });
      this.player = make("audio", { controls: true, hidden: true, "aria-label": regard.say("sound.play") });
      this.about = make("p", { class: "muted", data: { role: "file" } });
      this.error = make("p", { class: "bad", role: "alert" });
      this.element.replaceChildren(
        make("div", { class: "file-choose" },
          make("label", { class: "file-button", for: "file" }, regard.say("app.file.choose")), this.chooser,
          make("span", { class: "muted" }, regard.say(app.isSoundModel(model) ? "app.sound.drop" : "app.file.drop")),
          ...(app.isSoundModel(model) && app.canRecord()
            ? [app.recordButton(model, (file) => this.take(file), (text) => { this.error.textContent = text; })] : [])),
        this.preview, this.player, this.about, this.error,
        ...(isImageModel(model) && model.reads.channels === 1 ? [this.drawing()] : []));
      this.drawPreview();
    }

    // Draws the current image as the model reads it.
    drawPreview() {
      const found = files.get(this.name);
      this.preview.hidden = !found?.image;
      this.about.textContent = this.name;
      app.playFile(this.player, app.isSoundModel(this.model) ? found : null);
      if (!found?.image || !isImageModel(this.model)) return;
      const { height, width, channels } = this.model.reads;
      const pixels = convert(found.image, this.model.reads);
      if (channels < 3) {
        for (let at = 0; at < pixels.data.length; at += 4) {
          const [red, green, blue] = pixels.data.subarray(at, at + 3);
          pixels.data.fill((red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16, at, at + 3);
        }
      }
      [this.preview.width, this.preview.height] = [width, height];
      this.preview.getContext("2d").putImageData(pixels, 0, 0);
      const { width: w, height: h } = found.image;
      const key = w === width && h === height ? "app.file.same" : "app.file.resized";
      const kind = regard.say(channels < 3 ? "app.file.gray" : "app.file.color");
      this.about.textContent = regard.say(key, { name: this.name, from: `${w} \u00d7 ${h}`, to: `${width} \u00d7 ${height}`, kind });
    }

    // Reads the first of several files, and names it if there are others.
    async takeFirst(found) {
      await this.take(found[0]);
      if (found.length > 1) this.error.textContent = regard.say("app.file.first", { name: found[0].name, count: found.length });
    }

    // Reads a file of the user.
    async take(file) {
      if (!file) return;
      this.error.textContent = "";
      const entry = { file, image: null, data: toBase64(new Uint8Array(await file.arrayBuffer())) };
      if (isImageModel(this.model)) {
        try {
          entry.image = await createImageBitmap(file);
        } catch {
          this.error.textContent = regard.say("app.file.broken", { name: file.name });
          return;
        }
      }
      this.use(file.name || "image", entry);
    }

    use(name, entry) {
      keep(name, entry);
      this.name = name;
      this.drawPreview();
      this.onInput(name);
    }

    // A canvas to draw on with a pen, dark or light as the training images are on average.
    drawing() {
      const isDark = this.model.reads.mean[0] < 128;
      const ratio = this.model.reads.height / this.model.reads.width;
      const canvas = make("canvas", { class: "pen", width: PEN, height: Math.round(PEN * ratio), role: "img", "aria-label": regard.say("app.file.draw") });
      const context = canvas.getContext("2d");
      const clear = () => {
        context.fillStyle = isDark ? "#000" : "#fff";
        context.fillRect(0, 0, canvas.width, canvas.height);
      };
      clear();
      Object.assign(context, { lineWidth: PEN / 13, lineCap: "round", lineJoin: "round", strokeStyle: isDark ? "#fff" : "#000" });
      const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [(event.clientX - box.left) / box.width * canvas.width, (event.clientY - box.top) / box.height * canvas.height];
      };
      canvas.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        canvas.setPointerCapture(event.pointerId);
        context.beginPath();
        context.moveTo(...place(event));
        context.lineTo(...place(event));
        context.stroke();
      });
      canvas.addEventListener("pointermove", (event) => {
        if (!canvas.hasPointerCapture(event.pointerId)) return;
        context.lineTo(...place(event));
        context.stroke();
      });
      canvas.addEventListener("pointerup", async () => {
        this.drawings += 1;
        const name = regard.say("app.file.drawing", { number: this.drawings });
        this.use(name, { file: { type: "image/png" }, image: await createImageBitmap(canvas), data: "" });
      });
      return make("details", { class: "draw" }, make("summary", {}, regard.say("app.file.draw")), canvas,
        app.button("app.file.clear", clear, { class: "ghost" }));
    }
  }
  app.FileInput = FileInput;
})();
