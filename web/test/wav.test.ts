import assert from "node:assert/strict";
import { test } from "node:test";
import { pcmFile, Samples, toFloat, wavFile, WavReader } from "../src/wav.ts";

// A file as the format's description has it, with a chunk before the data and `dataSize` as the header says it.
function handMade(samples: number[], rate: number, dataSize: number, extra = ""): Uint8Array {
  const le = (n: number, bytes: number) => [...Array(bytes).keys()].map((i) => Math.floor(n / 256 ** i) % 256);
  const ascii = (t: string) => [...t].map((c) => c.charCodeAt(0));
  const fmt = [...ascii("fmt "), ...le(16, 4), ...le(1, 2), ...le(1, 2), ...le(rate, 4), ...le(rate * 2, 4), ...le(2, 2), ...le(16, 2)];
  const list = extra ? [...ascii("LIST"), ...le(extra.length, 4), ...ascii(extra), ...(extra.length % 2 ? [0] : [])] : [];
  const data = [...ascii("data"), ...le(dataSize, 4), ...samples.flatMap((s) => le(s < 0 ? s + 65536 : s, 2))];
  return Uint8Array.from([...ascii("RIFF"), ...le(0xffffffff, 4), ...ascii("WAVE"), ...fmt, ...list, ...data]);
}

const samples = [0, 1, -1, 32767, -32768, 12345, -12345];

test("pieces of any size give the same samples", () => {
  for (const size of [0xffffffff, 0, 0x7fffffff, 2 * samples.length]) {
    for (const extra of ["", "abc", "abcd"]) {
      const file = handMade(samples, 16000, size, extra);
      for (const step of [1, 2, 3, 7, 44, 1000]) {
        const reader = new WavReader();
        const all: number[] = [];
        for (let at = 0; at < file.length; at += step) all.push(...reader.push(file.slice(at, at + step)));
        assert.deepEqual(all, samples, `size ${size}, extra "${extra}", step ${step}`);
        assert.equal(reader.sampleRate, 16000);
      }
    }
  }
});

test("what follows a data chunk of known length is no sound", () => {
  const file = handMade([...samples, 99, 99], 8000, 2 * samples.length);
  assert.deepEqual([...new WavReader().push(file)], samples);
});

test("other files are refused", () => {
  assert.throws(() => new WavReader().push(new TextEncoder().encode("<!doctype html>")), /no WAV/);
  const stereo = handMade(samples, 16000, 14);
  stereo[22] = 2;
  assert.throws(() => new WavReader().push(stereo), /2 channels/);
});

test("a file written here is read back, and pcm is its end", () => {
  const file = wavFile(Int16Array.from(samples), 44100);
  const reader = new WavReader();
  assert.deepEqual([...reader.push(file)], samples);
  assert.equal(reader.sampleRate, 44100);
  assert.deepEqual(file.slice(44), pcmFile(Int16Array.from(samples)));
  assert.deepEqual([...file], [...handMade(samples, 44100, 14).map((b, i) => (i >= 4 && i < 8 ? file[i]! : b))]);
});

test("samples grow without loss, and floats stay within [-1, 1)", () => {
  const all = new Samples();
  const expected: number[] = [];
  for (let i = 0; i < 300; ++i) {
    const piece = Int16Array.from({ length: 1 + ((i * 37) % 900) }, (_, k) => ((i * 7919 + k * 104729) % 65536) - 32768);
    all.append(piece);
    expected.push(...piece);
  }
  assert.equal(all.length, expected.length);
  assert.deepEqual([...all.slice()], expected);
  assert.deepEqual([...all.slice(5, 9)], expected.slice(5, 9));
  assert.deepEqual([...toFloat(Int16Array.from([-32768, 0, 16384, 32767]))], [-1, 0, 0.5, 32767 / 32768]);
});
