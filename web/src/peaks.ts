// The outline of a sound, kept fine and drawn coarse.

export const kPeaksPerSecond = 100;

// The largest absolute value, 0 to 1, of each hundredth of a second.
export class Peaks {
  private values: number[] = [];
  private filled = 0; // samples in the last, open one
  private readonly window: number;

  constructor(sampleRate: number) {
    this.window = Math.max(1, Math.round(sampleRate / kPeaksPerSecond));
  }

  append(samples: Int16Array): void {
    for (const sample of samples) {
      if (this.filled === 0) this.values.push(0);
      const value = Math.abs(sample) / 32768;
      const last = this.values.length - 1;
      if (value > this.values[last]!) this.values[last] = value;
      this.filled = (this.filled + 1) % this.window;
    }
  }

  get length(): number {
    return this.values.length;
  }

  // `count` bars over `span` peaks from the beginning: the largest of each share, 0 beyond the end.
  bars(count: number, span: number): Float32Array {
    const out = new Float32Array(count);
    for (let bar = 0; bar < count; ++bar) {
      const from = Math.floor((bar * span) / count);
      const to = Math.max(from + 1, Math.floor(((bar + 1) * span) / count));
      for (let i = from; i < Math.min(to, this.values.length); ++i) out[bar] = Math.max(out[bar]!, this.values[i]!);
    }
    return out;
  }
}
