// The microphone, as samples. Browsers give it to pages over HTTPS and of this machine only.
import { Samples } from "./wav.ts";

export const kLongestClip_s = 30;

export function microphoneMissing(): boolean {
  return !navigator.mediaDevices?.getUserMedia;
}

// Why there is none, in words that say what to do.
export function whyNoMicrophone(error: unknown): string {
  switch (error instanceof DOMException ? error.name : "") {
    case "NotAllowedError":
      return "The browser does not allow the microphone. Allow it for this page, beside the address, and press Record again.";
    case "NotFoundError":
      return "No microphone is connected to this machine.";
    case "NotReadableError":
      return "Another program uses the microphone. Close it, and press Record again.";
    default:
      return `The microphone does not work: ${error instanceof Error ? error.message : String(error)}`;
  }
}

export class Recorder {
  readonly samples = new Samples();
  peak = 0; // the largest absolute value so far, 0 to 1

  private constructor(
    private readonly stream: MediaStream,
    private readonly context: AudioContext,
    onLevel: (peak: number) => void,
  ) {
    const microphone = context.createMediaStreamSource(stream);
    const node = new AudioWorkletNode(context, "shoal-recorder", { channelCount: 1, channelCountMode: "explicit" });
    node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => {
      const peak = this.take(data);
      this.peak = Math.max(this.peak, peak);
      onLevel(peak);
    };
    microphone.connect(node);
    node.connect(context.destination); // it is silent; a node that leads nowhere may not run
  }

  // Asks the person for the microphone. `onLevel` gets the peak of each block of 128 samples, 0 to 1.
  static async start(workletUrl: string, onLevel: (peak: number) => void): Promise<Recorder> {
    // As the room sounds: what makes calls clear takes away from a voice.
    const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: true };
    const stream = await navigator.mediaDevices.getUserMedia({ audio });
    const context = new AudioContext();
    try {
      await context.audioWorklet.addModule(workletUrl);
      await context.resume();
      return new Recorder(stream, context, onLevel);
    } catch (error) {
      close(stream, context);
      throw error;
    }
  }

  get sampleRate(): number {
    return this.context.sampleRate;
  }

  get length_s(): number {
    return this.samples.length / this.sampleRate;
  }

  // The microphone is off afterwards.
  stop(): void {
    close(this.stream, this.context);
  }

  private take(block: Float32Array): number {
    const room = kLongestClip_s * this.sampleRate - this.samples.length;
    const piece = new Int16Array(Math.min(block.length, Math.max(0, room)));
    let peak = 0;
    for (let i = 0; i < piece.length; ++i) {
      const value = Math.max(-1, Math.min(1, block[i]!));
      piece[i] = Math.round(32767 * value);
      peak = Math.max(peak, Math.abs(value));
    }
    this.samples.append(piece);
    return peak;
  }
}

function close(stream: MediaStream, context: AudioContext): void {
  for (const track of stream.getTracks()) track.stop();
  void context.close();
}
