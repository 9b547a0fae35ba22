// WAV as a stream: the server's header has no true lengths yet, and pieces end anywhere.

// 16-bit mono samples in one growing array.
export class Samples {
  private store = new Int16Array(1 << 16);
  length = 0;

  append(piece: Int16Array): void {
    if (this.length + piece.length > this.store.length) {
      const larger = new Int16Array(Math.max(2 * this.store.length, this.length + piece.length));
      larger.set(this.store.subarray(0, this.length));
      this.store = larger;
    }
    this.store.set(piece, this.length);
    this.length += piece.length;
  }

  // A view, valid until the next append.
  slice(from = 0, to = this.length): Int16Array {
    return this.store.subarray(from, Math.min(to, this.length));
  }
}

// To [-1, 1).
export function toFloat(samples: Int16Array): Float32Array<ArrayBuffer> {
  const out = new Float32Array(samples.length);
  for (let i = 0; i < samples.length; ++i) out[i] = samples[i]! / 32768;
  return out;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b;
  const out = new Uint8Array(a.length + b.length);
  out.set(a);
  out.set(b, a.length);
  return out;
}

// Bytes in, samples out. Mono 16-bit PCM only: that is what the server makes. Throws Error for anything else.
export class WavReader {
  sampleRate = 0; // Hz; 0 until the header is there
  private pending: Uint8Array = new Uint8Array(0);
  private left = 0; // bytes of the data chunk that are still to come
  private inData = false;

  push(bytes: Uint8Array): Int16Array {
    this.pending = joined(this.pending, bytes);
    if (!this.inData && !this.readHeader()) return new Int16Array(0);
    const take = Math.min(this.pending.length, this.left) & ~1;
    const view = new DataView(this.pending.buffer, this.pending.byteOffset, take);
    const samples = new Int16Array(take / 2);
    for (let i = 0; i < samples.length; ++i) samples[i] = view.getInt16(2 * i, true);
    this.left -= take;
    this.pending = this.left > 0 ? this.pending.slice(take) : new Uint8Array(0);
    return samples;
  }

  // Moves past the header once all of it is there.
  private readHeader(): boolean {
    const bytes = this.pending;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const tag = (at: number) => String.fromCharCode(...bytes.subarray(at, at + 4));
    if (bytes.length < 12) return false;
    if (tag(0) !== "RIFF" || tag(8) !== "WAVE") throw new Error("the server's answer is no WAV file");
    let at = 12;
    while (bytes.length >= at + 8) {
      const size = view.getUint32(at + 4, true);
      if (tag(at) === "data") {
        if (this.sampleRate === 0) throw new Error("the WAV file of the server has no format");
        // 0 and 2^32 - 1 stand for "not known yet".
        this.left = size === 0 || size >= 0x7fffff00 ? Infinity : size;
        this.pending = bytes.slice(at + 8);
        this.inData = true;
        return true;
      }
      if (bytes.length < at + 8 + size) return false;
      if (tag(at) === "fmt ") this.readFormat(view, at + 8);
      at += 8 + size + (size & 1);
    }
    return false;
  }

  private readFormat(view: DataView, at: number): void {
    const kind = view.getUint16(at, true);
    const channels = view.getUint16(at + 2, true);
    const bits = view.getUint16(at + 14, true);
    if (kind !== 1 || channels !== 1 || bits !== 16) {
      throw new Error(`expected WAV with 16-bit mono PCM, not format ${kind} with ${channels} channels of ${bits} bits`);
    }
    this.sampleRate = view.getUint32(at + 4, true);
  }
}

// A whole WAV file.
export function wavFile(samples: Int16Array, sampleRate: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(44 + 2 * samples.length);
  const view = new DataView(out.buffer);
  const tag = (at: number, text: string) => [...text].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  tag(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  tag(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, 2 * sampleRate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  tag(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  out.set(pcmFile(samples), 44);
  return out;
}

// The samples alone, little-endian.
export function pcmFile(samples: Int16Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(2 * samples.length);
  const view = new DataView(out.buffer);
  samples.forEach((sample, i) => view.setInt16(2 * i, sample, true));
  return out;
}
