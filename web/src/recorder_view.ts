// Records a clip from the microphone into the file input beside it.
import { byId } from "./dom.ts";
import { clock } from "./format.ts";
import { kLongestClip_s, microphoneMissing, Recorder, whyNoMicrophone } from "./recorder.ts";
import { toFloat, wavFile } from "./wav.ts";

// About twelve seconds, with the sounds of English.
const kReading =
  "On quiet evenings the ferry crosses the bay without a sound. A few people stand at the rail, measure the distance " +
  "to the other shore, and choose which of the lights they would like to call home.";

const kLowest_dB = -60; // of the meter
const kFall = 0.94; // of the meter from one picture to the next
const kShort_s = 5;
const kQuiet = 0.03;
const kLoud = 0.995;

export class RecorderView {
  private recorder: Recorder | null = null;
  private asking = false;
  private level = 0;
  private player: AudioContext | null = null;
  private take: { samples: Int16Array; sampleRate: number } | null = null;
  private readonly button = byId<HTMLButtonElement>("record");
  private readonly listen = byId<HTMLButtonElement>("record-listen");
  private readonly meter = byId("record-level");
  private readonly file = byId<HTMLInputElement>("voice-file");
  private readonly words = byId<HTMLTextAreaElement>("voice-text");

  // `onBusy`: while it records nothing can be saved.
  constructor(private readonly onBusy: (busy: boolean) => void) {
    this.button.addEventListener("click", () => void (this.recorder ? this.stop() : this.start()));
    this.listen.addEventListener("click", () => this.hear());
    this.file.addEventListener("change", () => this.forget());
    if (!microphoneMissing()) return;
    this.button.disabled = true;
    this.say("Browsers give a page the microphone only over HTTPS or on this machine (localhost). Record with another program, and upload the file.");
  }

  // The dialog is gone: so is the microphone.
  close(): void {
    if (this.recorder) this.stop();
    this.silence();
  }

  // The clip belongs to a voice now.
  forget(): void {
    this.take = null;
    this.listen.hidden = true;
    this.silence();
    if (!microphoneMissing()) this.say("");
  }

  private say(words: string): void {
    byId("record-note").textContent = words;
  }

  private async start(): Promise<void> {
    if (this.asking) return;
    this.asking = true;
    this.forget();
    this.say("Waiting for the microphone");
    try {
      const recorder = await Recorder.start(byId("recorder").dataset.src!, (peak) => (this.level = Math.max(this.level, peak)));
      this.asking = false;
      if (!byId<HTMLDialogElement>("voice-dialog").open) return recorder.stop();
      this.begin(recorder);
    } catch (error) {
      this.asking = false;
      this.say(whyNoMicrophone(error));
    }
  }

  private begin(recorder: Recorder): void {
    this.recorder = recorder;
    this.level = 0;
    if (!this.words.value.trim()) this.words.value = kReading;
    this.words.rows = 6; // all of it is seen
    this.say("Read the transcript aloud, as you would speak to a friend.");
    this.button.textContent = "Stop";
    byId("record-live").hidden = false;
    this.onBusy(true);
    const frame = () => {
      if (this.recorder !== recorder) return;
      this.show(recorder);
      if (recorder.length_s >= kLongestClip_s) this.stop();
      else requestAnimationFrame(frame);
    };
    frame();
  }

  private show(recorder: Recorder): void {
    const level_dB = 20 * Math.log10(Math.max(this.level, 1e-6));
    const share = Math.max(0, 1 - level_dB / kLowest_dB);
    this.level *= kFall;
    this.meter.style.setProperty("--level", `${Math.round(100 * share)}%`);
    this.meter.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    byId("record-time").textContent = clock(recorder.length_s);
  }

  private stop(): void {
    const recorder = this.recorder!;
    this.recorder = null;
    const { sampleRate } = recorder;
    recorder.stop();
    this.button.textContent = "Record again";
    byId("record-live").hidden = true;
    this.onBusy(false);
    this.say(verdict(recorder));
    if (recorder.samples.length === 0) return;
    this.take = { samples: recorder.samples.slice(), sampleRate };
    this.listen.hidden = false;
    const files = new DataTransfer();
    files.items.add(new File([wavFile(this.take.samples, sampleRate)], "recording.wav", { type: "audio/wav" }));
    this.file.files = files.files;
  }

  private hear(): void {
    if (this.player) return this.silence();
    const { samples, sampleRate } = this.take!;
    const player = new AudioContext();
    const buffer = player.createBuffer(1, samples.length, sampleRate);
    buffer.copyToChannel(toFloat(samples), 0);
    const source = player.createBufferSource();
    source.buffer = buffer;
    source.connect(player.destination);
    source.onended = () => this.player === player && this.silence();
    source.start();
    this.player = player;
    this.listen.textContent = "Stop listening";
  }

  private silence(): void {
    void this.player?.close();
    this.player = null;
    this.listen.textContent = "Listen";
  }
}

function verdict(recorder: Recorder): string {
  const length = `${recorder.length_s.toFixed(1)} seconds`;
  if (recorder.peak < kQuiet) return `${length}, almost silent. Check which microphone the browser uses, and record again.`;
  if (recorder.peak > kLoud) return `${length}, too loud in places. Move away from the microphone, and record again.`;
  if (recorder.length_s < kShort_s) return `Only ${length}: a voice follows a clip of five seconds or more better.`;
  return `${length} recorded.`;
}
