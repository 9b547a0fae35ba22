// Sound files, made and read without the code under test.
import assert from "node:assert/strict";

// A RIFF file of 16-bit mono samples.
export function wav(samples, rate = 16000) {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples.length * 2, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples.length * 2, 40);
  return Buffer.concat([head, Buffer.from(Int16Array.from(samples).buffer)]);
}

// Something between a vowel and a machine: a clip that is audio and not silence.
export function clip(seconds = 2, rate = 16000, pitch = 120) {
  const samples = new Array(Math.round(seconds * rate));
  for (let i = 0; i < samples.length; ++i) {
    const t = i / rate;
    const wave = [1, 2, 3, 5].reduce((sum, k) => sum + Math.sin(2 * Math.PI * pitch * k * t) / k, 0);
    samples[i] = Math.round(5000 * wave * (0.6 + 0.4 * Math.sin(2 * Math.PI * 3 * t)));
  }
  return wav(samples, rate);
}

// {rate, samples: Int16Array} of a 16-bit mono RIFF file; sizes of a streamed one may be unknown (0 or all ones).
export function readWav(bytes, { streamed = false } = {}) {
  assert.equal(bytes.toString("latin1", 0, 4), "RIFF");
  assert.equal(bytes.toString("latin1", 8, 12), "WAVE");
  if (!streamed) assert.equal(bytes.readUInt32LE(4), bytes.length - 8, "RIFF size");
  let at = 12;
  let rate = 0;
  for (;;) {
    const name = bytes.toString("latin1", at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    at += 8;
    if (name === "fmt ") {
      assert.equal(bytes.readUInt16LE(at), 1, "16-bit PCM");
      assert.equal(bytes.readUInt16LE(at + 2), 1, "mono");
      rate = bytes.readUInt32LE(at + 4);
      assert.equal(bytes.readUInt16LE(at + 14), 16, "16-bit PCM");
    }
    if (name === "data") {
      if (!streamed) assert.equal(size, bytes.length - at, "size of the samples");
      return { rate, samples: readPcm(bytes.subarray(at)), pcm: bytes.subarray(at) };
    }
    at += size + (size & 1);
    assert.ok(at + 8 <= bytes.length, "a WAV file without samples");
  }
}

export function readPcm(bytes) {
  assert.equal(bytes.length % 2, 0, "half a sample");
  return new Int16Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

// Loud enough to be speech.
export function assertSpeech(samples, rate, { from_s = 0.3, to_s = 60 } = {}) {
  const seconds = samples.length / rate;
  assert.ok(seconds >= from_s && seconds <= to_s, `${seconds} s of sound`);
  const power = samples.reduce((sum, x) => sum + x * x, 0) / samples.length;
  assert.ok(Math.sqrt(power) > 100, `only ${Math.sqrt(power)} loud`);
}

// What a file of each format begins with.
export const magic = {
  wav: (b) => b.toString("latin1", 0, 4) === "RIFF",
  flac: (b) => b.toString("latin1", 0, 4) === "fLaC",
  opus: (b) => b.toString("latin1", 0, 4) === "OggS" && b.toString("latin1", 28, 36) === "OpusHead",
  mp3: (b) => (b[0] === 0xff && (b[1] & 0xe6) === 0xe2) || b.toString("latin1", 0, 3) === "ID3",
  aac: (b) => b[0] === 0xff && (b[1] & 0xf6) === 0xf0,  // ADTS
  pcm: (b) => b.length > 0 && b.length % 2 === 0,
  ulaw: (b) => new Set(b).size > 30,  // it has no header: a sound has many values
  pt: (b) => b.toString("latin1", 0, 4) === "PK\x03\x04",  // of torch.save
};

// A FLAC file that decodes to `hours` of silence from a few kilobytes: every frame is one constant subframe of 32,768
// samples. The format: RFC 9639.
export function endlessFlac(hours, rate = 16000, { declared } = {}) {
  const block = 32768;
  const frames = Math.ceil((hours * 3600 * rate) / block);
  const total = declared ?? BigInt(frames) * BigInt(block);
  const info = Buffer.alloc(34);
  info.writeUInt16BE(block, 0);
  info.writeUInt16BE(block, 2);
  // rate (20 bits), channels - 1 (3), bits - 1 (5), samples (36)
  info.writeBigUInt64BE((BigInt(rate) << 44n) | (15n << 36n) | (total & 0xfffffffffn), 10);
  const out = [Buffer.from("fLaC"), Buffer.from([0x80, 0, 0, 34]), info];
  for (let number = 0; number < frames; ++number) {
    // sync, fixed blocks; block size code 15 (32,768), rate from STREAMINFO; mono, 16 bits
    const head = [0xff, 0xf8, 0xf0, 0x08, ...flacNumber(number)];
    head.push(crc(head, 8, 0x07));
    const frame = [...head, 0x00, 0x00, 0x05];  // constant subframe, value 5
    const sum = crc(frame, 16, 0x8005);
    out.push(Buffer.from([...frame, sum >> 8, sum & 255]));
  }
  return Buffer.concat(out);
}

function flacNumber(n) {
  if (n < 0x80) return [n];
  const tail = [];
  let limit = 0x40;
  while (n >= limit) {
    tail.unshift(0x80 | (n & 0x3f));
    n = Math.floor(n / 64);
    limit = limit === 0x40 ? 0x20 : limit / 2;
  }
  const marks = [0, 0xc0, 0xe0, 0xf0, 0xf8, 0xfc];
  return [marks[tail.length] | n, ...tail];
}

function crc(bytes, width, polynomial) {
  const top = 1 << (width - 1);
  const mask = (1 << width) - 1;
  let value = 0;
  for (const byte of bytes) {
    value ^= byte << (width - 8);
    for (let bit = 0; bit < 8; ++bit) value = (value & top ? (value << 1) ^ polynomial : value << 1) & mask;
  }
  return value;
}
