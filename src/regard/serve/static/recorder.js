// The input of models that read sounds: a player for the current file, and a recorder. Recordings are
// converted to WAV (16 bits, mono), because browsers record in formats that few programs read.
(() => {
  "use strict";
  const regard = window.regard;
  const app = (regard.app = regard.app || {});
  const make = (...parts) => regard.make(...parts);
  const MAX_SECONDS = 60; // of a recording

  app.isSoundModel = (model) => model.reads?.rate > 0;
  app.canRecord = () => Boolean(navigator.mediaDevices?.getUserMedia && window.MediaRecorder && window.OfflineAudioContext);

  // Returns samples from -1 to 1 as the bytes of a WAV file.
  app.wavBytes = (samples, rate) => {
    const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
    const text = (at, value) => [...value].forEach((char, index) => view.setUint8(at + index, char.charCodeAt(0)));
    text(0, "RIFF");
    view.setUint32(4, 36 + 2 * samples.length, true);
    text(8, "WAVEfmt ");
    view.setUint32(16, 16, true);
    [1, 1].forEach((value, index) => view.setUint16(20 + 2 * index, value, true));
    view.setUint32(24, rate, true);
    view.setUint32(28, 2 * rate, true);
    [2, 16].forEach((value, index) => view.setUint16(32 + 2 * index, value, true));
    text(36, "data");
    view.setUint32(40, 2 * samples.length, true);
    samples.forEach((value, index) => view.setInt16(44 + 2 * index, Math.round(Math.max(-1, Math.min(1, value)) * 32767), true));
    return new Uint8Array(view.buffer);
  };

  // Returns a recording of the browser as mono samples at the rate that the model reads.
  async function toSamples(blob, rate) {
    const decoder = new OfflineAudioContext(1, 1, rate);
    const sound = await decoder.decodeAudioData(await blob.arrayBuffer()); // resampled to `rate`
    const parts = Array.from({ length: sound.numberOfChannels }, (_, channel) => sound.getChannelData(channel));
    return Float32Array.from(parts[0], (_, index) => parts.reduce((sum, part) => sum + part[index], 0) / parts.length);
  }

  // A button that starts and ends a recording. onFile(file) gets a WAV file; onError(text) a message.
  app.recordButton = (model, onFile, onError) => {
    let recorder = null, count = 0;
    const button = app.button("app.sound.record", () => (recorder ? recorder.stop() : start()), { class: "ghost", data: { role: "record" } });
    const label = (key) => { button.textContent = regard.say(key); };
    const start = async () => {
      let stream;
      try {
        stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      } catch {
        onError(regard.say("app.sound.denied"));
        return;
      }
      const chunks = [];
      recorder = new MediaRecorder(stream);
      let isFull = false;
      const timer = setTimeout(() => { isFull = true; recorder?.stop(); }, 1000 * MAX_SECONDS);
      recorder.addEventListener("dataavailable", (event) => chunks.push(event.data));
      recorder.addEventListener("stop", async () => {
        clearTimeout(timer);
        stream.getTracks().forEach((track) => track.stop());
        recorder = null;
        label("app.sound.record");
        count += 1;
        const { rate } = model.reads;
        try {
          const bytes = app.wavBytes(await toSamples(new Blob(chunks), rate), rate);
          await onFile(new File([bytes], `${regard.say("app.sound.recording", { number: count })}.wav`, { type: "audio/wav" }));
          if (isFull) onError(regard.say("app.sound.full", { seconds: MAX_SECONDS }));
        } catch {
          onError(regard.say("app.sound.failed")); // such as a recording without any data
        }
      });
      recorder.start();
      label("app.sound.stop");
    };
    return button;
  };

  // Shows the current file in a player; nothing without a file.
  app.playFile = (player, found) => {
    player.hidden = !found;
    if (found) player.src = `data:${found.file.type || "audio/wav"};base64,${found.data}`;
  };
})();
