// Sound that begins while it is still arriving. Plain buffer sources on the audio clock, no worklet: those exist only
// in secure contexts, and a server in the house is reached over plain HTTP.
import type { Prebuffer } from "./prebuffer.ts";
import { Timeline } from "./timeline.ts";
import { Samples, toFloat } from "./wav.ts";

const kLead_s = 0.06; // before the first sample sounds
const kLongestLead_s = 4; // after running dry again and again
const kMargin_s = 0.005; // what is placed nearer to now than this might come late
const kFade_s = 0.008; // so that jumps do not click

export class Player {
  readonly samples = new Samples();
  private readonly timeline: Timeline;
  private readonly output: GainNode;
  private readonly sources = new Set<AudioBufferSourceNode>();
  private complete = false;
  private closed = false;
  private held = true; // nothing sounds until enough has arrived
  private timer = 0;

  // `context` was made during a click or key press: browsers let only those sound. `onSound`: it begins to sound.
  constructor(
    private readonly context: AudioContext,
    readonly sampleRate: number,
    private readonly prebuffer: Prebuffer,
    private readonly onSound: () => void,
  ) {
    this.timeline = new Timeline(Math.round(kLead_s * sampleRate), Math.round(kLongestLead_s * sampleRate));
    this.output = context.createGain();
    this.output.connect(context.destination);
  }

  // `time_s`: when it arrived, from the request on.
  append(piece: Int16Array, time_s: number): void {
    const position = this.samples.length;
    this.samples.append(piece);
    if (!this.held) return this.schedule(position, piece);
    this.prebuffer.arrived(time_s, piece.length / this.sampleRate);
    clearTimeout(this.timer);
    const { hold_s } = this.prebuffer;
    if (hold_s === 0) this.release();
    else this.timer = window.setTimeout(() => this.release(), 1000 * hold_s);
  }

  // Nothing more will come.
  finish(): void {
    this.complete = true;
    this.release();
  }

  play(): void {
    if (this.ended) this.seek(0);
    void this.context.resume();
  }

  pause(): void {
    void this.context.suspend();
  }

  // To a position in seconds, playing or not as before.
  seek(seconds: number): void {
    if (this.closed || this.samples.length === 0) return;
    this.release();
    const last = this.complete ? this.samples.length : this.samples.length - 1;
    const position = Math.max(0, Math.min(last, Math.round(seconds * this.sampleRate)));
    this.silence();
    this.timeline.clear();
    const rest = this.samples.slice(position);
    if (rest.length > 0) this.schedule(position, rest);
    else this.timeline.place(this.now(), position, 0);
  }

  get playing(): boolean {
    return this.context.state === "running" && !this.ended;
  }

  get ended(): boolean {
    return this.complete && this.now() >= this.timeline.end();
  }

  get position_s(): number {
    return this.timeline.positionAt(Math.floor(this.context.currentTime * this.sampleRate)) / this.sampleRate;
  }

  get length_s(): number {
    return this.samples.length / this.sampleRate;
  }

  get gaps(): number {
    return this.timeline.gaps;
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    this.silence();
    void this.context.close();
  }

  private release(): void {
    clearTimeout(this.timer);
    if (!this.held || this.closed) return;
    this.held = false;
    this.schedule(0, this.samples.slice());
    this.onSound();
  }

  private now(): number {
    return Math.ceil((this.context.currentTime + kMargin_s) * this.sampleRate);
  }

  private schedule(position: number, piece: Int16Array): void {
    if (this.closed || piece.length === 0) return;
    const buffer = this.context.createBuffer(1, piece.length, this.sampleRate);
    buffer.copyToChannel(toFloat(piece), 0);
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.output);
    source.onended = () => this.sources.delete(source);
    this.sources.add(source);
    source.start(this.timeline.place(this.now(), position, piece.length) / this.sampleRate);
  }

  private silence(): void {
    const stop = this.context.currentTime + kFade_s;
    this.output.gain.cancelScheduledValues(0);
    this.output.gain.setTargetAtTime(0, this.context.currentTime, kFade_s / 4);
    this.output.gain.setValueAtTime(1, stop + kFade_s);
    for (const source of this.sources) source.stop(stop);
    this.sources.clear();
  }
}
