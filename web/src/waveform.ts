// The outline of the speech on a canvas, drawn as it arrives; also the slider that moves within it.
import { clock } from "./format.ts";
import { kPeaksPerSecond, Peaks } from "./peaks.ts";
import type { Player } from "./player.ts";

const kBar_px = 3;
const kGap_px = 2;
const kShortest_s = 3; // a speech that is still arriving is drawn as if it were this long at least
const kStep_s = 1;

export class Waveform {
  private peaks: Peaks | null = null;
  private player: Player | null = null;
  private complete = false;

  constructor(private readonly canvas: HTMLCanvasElement) {
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.seekTo(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) this.seekTo(event);
    });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  begin(player: Player): void {
    this.player = player;
    this.peaks = new Peaks(player.sampleRate);
    this.complete = false;
  }

  append(samples: Int16Array): void {
    this.peaks?.append(samples);
  }

  finish(): void {
    this.complete = true;
    this.draw();
  }

  clear(): void {
    this.player = this.peaks = null;
    this.draw();
  }

  private get span_s(): number {
    const length = this.player?.length_s ?? 0;
    return this.complete ? length : Math.max(length, kShortest_s);
  }

  private seekTo(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    this.player?.seek(((event.clientX - box.left) / box.width) * this.span_s);
    this.draw();
  }

  private onKey(event: KeyboardEvent): void {
    const player = this.player;
    if (!player) return;
    const to: Record<string, number> = {
      ArrowLeft: player.position_s - kStep_s,
      ArrowDown: player.position_s - kStep_s,
      ArrowRight: player.position_s + kStep_s,
      ArrowUp: player.position_s + kStep_s,
      Home: 0,
      End: player.length_s,
    };
    if (event.key === " ") {
      if (player.playing) player.pause();
      else player.play();
    } else if (event.key in to) {
      player.seek(to[event.key]!);
    } else {
      return;
    }
    event.preventDefault();
    this.draw();
  }

  draw(): void {
    const { canvas } = this;
    const scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    if (!context) return;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(canvas);
    const count = Math.max(1, Math.floor((width + kGap_px) / (kBar_px + kGap_px)));
    const bars = this.peaks?.bars(count, this.span_s * kPeaksPerSecond) ?? new Float32Array(count);
    const position_s = this.player?.position_s ?? 0;
    const heard = this.player ? (position_s / this.span_s) * count : 0;
    const arrived = this.player ? (this.player.length_s / this.span_s) * count : 0;
    for (let bar = 0; bar < count; ++bar) {
      const colour = bar >= arrived ? "--faint" : bar < heard ? "--accent" : "--bar";
      context.fillStyle = style.getPropertyValue(colour);
      // The square root shows quiet speech beside loud.
      const tall = Math.max(kBar_px, Math.sqrt(bars[bar]!) * height);
      context.beginPath();
      roundBar(context, bar * (kBar_px + kGap_px), (height - tall) / 2, tall);
      context.fill();
    }
    this.describe(position_s);
  }

  private describe(position_s: number): void {
    const { canvas } = this;
    const length_s = this.player?.length_s ?? 0;
    canvas.setAttribute("aria-valuemax", length_s.toFixed(1));
    canvas.setAttribute("aria-valuenow", position_s.toFixed(1));
    const words = this.player ? `${clock(position_s)} of ${clock(length_s)}` : "nothing spoken yet";
    canvas.setAttribute("aria-valuetext", words);
  }
}

// A bar with round ends; roundRect() is missing in browsers of 2022.
function roundBar(context: CanvasRenderingContext2D, x: number, y: number, tall: number): void {
  const radius = kBar_px / 2;
  context.arc(x + radius, y + radius, radius, Math.PI, 0);
  context.arc(x + radius, y + tall - radius, radius, 0, Math.PI);
  context.closePath();
}
