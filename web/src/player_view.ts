// Waveform, play button, times and download of the speech that is there.
import { byId } from "./dom.ts";
import { clock } from "./format.ts";
import { Player } from "./player.ts";
import type { Prebuffer } from "./prebuffer.ts";
import { Waveform } from "./waveform.ts";

export class PlayerView {
  player: Player | null = null;
  private context: AudioContext | null = null;
  private rate = 44_100; // of the last speech: the best guess for the next
  private readonly waveform = new Waveform(byId<HTMLCanvasElement>("waveform"));
  private readonly play = byId<HTMLButtonElement>("play");

  constructor() {
    this.play.addEventListener("click", () => {
      if (this.player?.playing) this.player.pause();
      else this.player?.play();
      this.frame();
    });
    this.waveform.draw();
    const tick = () => {
      if (this.player) this.frame();
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  // To be called within a click or key press: later the browser may not let sound begin.
  arm(): void {
    this.reset();
    this.context = new AudioContext({ sampleRate: this.rate, latencyHint: "interactive" });
    void this.context.resume();
  }

  // `onSound`: enough has arrived, and it sounds.
  begin(sampleRate: number, prebuffer: Prebuffer, onSound: () => void): void {
    if (!this.context || this.context.sampleRate !== sampleRate) {
      void this.context?.close();
      // At the rate of the speech: resampling each piece by itself would be heard where they meet.
      this.context = new AudioContext({ sampleRate, latencyHint: "interactive" });
      void this.context.resume();
    }
    this.rate = sampleRate;
    this.player = new Player(this.context, sampleRate, prebuffer, onSound);
    this.waveform.begin(this.player);
    byId("player").dataset.empty = "false";
    this.play.disabled = false;
  }

  // `time_s`: when it arrived, from the request on.
  piece(samples: Int16Array, time_s: number): void {
    this.player?.append(samples, time_s);
    this.waveform.append(samples);
  }

  finish(): void {
    this.player?.finish();
    this.waveform.finish();
  }

  // Silences what plays, and keeps it to be heard again.
  stop(): void {
    this.player?.pause();
    this.finish();
  }

  private reset(): void {
    this.player?.close();
    if (!this.player) void this.context?.close();
    this.player = this.context = null;
    this.waveform.clear();
    byId("player").dataset.empty = "true";
    this.play.disabled = true;
    this.play.textContent = "Play";
    byId("time").textContent = byId("length").textContent = clock(0);
  }

  private frame(): void {
    const { player } = this;
    if (!player) return;
    this.waveform.draw();
    const label = player.playing ? "Pause" : "Play";
    if (this.play.textContent !== label) this.play.textContent = label;
    byId("time").textContent = clock(player.position_s);
    byId("length").textContent = clock(player.length_s);
    byId("gaps").textContent = String(player.gaps);
  }
}
