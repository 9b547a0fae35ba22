// What a listener would hear in the answers: decoded by FFmpeg, as LiveKit's agents bring it along.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { magic, readPcm } from "../server/sound.mjs";
import { load } from "./clients.mjs";

export const rate = 24_000;  // of everything that is heard

const { getFfmpegPath } = await load("@livekit/av");
const ffmpeg = getFfmpegPath() ?? "ffmpeg";

// 16-bit samples of a whole answer in any format but aac, for which this FFmpeg has no decoder.
export function heard(bytes, format) {
  assert.ok(magic[format](bytes), `not ${format}: ${bytes.subarray(0, 16).toString("hex")}`);
  if (format === "pcm") return readPcm(bytes);
  const done = spawnSync(ffmpeg, ["-v", "error", "-i", "pipe:0", "-f", "s16le", "-ac", "1", "-ar", String(rate), "pipe:1"],
    { input: bytes, maxBuffer: 1 << 30 });
  assert.equal(done.status, 0, `${done.error ?? done.stderr}`);
  return readPcm(done.stdout);
}

export const seconds = (samples) => samples.length / rate;

export function loudness(samples) {
  return Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length);
}

export function assertSame(samples, others, what = "the sound") {
  assert.equal(samples.length, others.length, `samples of ${what}`);
  assert.ok(Buffer.from(samples.buffer).equals(Buffer.from(others.buffer)), `${what} differs`);
}

// What an answer with nothing to say has: LiveKit's agents need 0.1 s, or they hear nothing at all.
export function assertSilence(samples) {
  assert.ok(seconds(samples) >= 0.1 && seconds(samples) < 2, `${seconds(samples)} s of silence`);
  assert.ok(loudness(samples) < 20, `silence is ${loudness(samples)} loud`);
}

// Seconds of an aac answer, by the headers of its frames (ADTS, ISO/IEC 13818-7).
export function aacSeconds(bytes) {
  const rates = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000];
  let sum = 0;
  let at = 0;
  while (at < bytes.length) {
    assert.ok(magic.aac(bytes.subarray(at)), `no frame at byte ${at}`);
    sum += 1024 / rates[(bytes[at + 2] >> 2) & 15];
    at += ((bytes[at + 3] & 3) << 11) | (bytes[at + 4] << 3) | (bytes[at + 5] >> 5);
  }
  assert.equal(at, bytes.length, "the last frame is whole");
  return sum;
}

// Median pitch in Hz of what is voiced: autocorrelation of windows of 40 ms.
export function pitch(samples) {
  const step = 3;
  const low = Float64Array.from({ length: Math.floor(samples.length / step) }, (_, i) => samples[i * step]);
  const of = rate / step;
  const size = Math.round(0.04 * of);
  const found = [];
  for (let from = 0; from + 2 * size < low.length; from += size) {
    const best = strongestLag(low, from, size, Math.round(of / 350), Math.round(of / 65));
    if (best.strength > 0.6) found.push(of / best.lag);
  }
  assert.ok(found.length > 5, `only ${found.length} voiced windows`);
  return found.sort((a, b) => a - b)[Math.floor(found.length / 2)];
}

// Multiples of a period fit as well: the shortest lag counts that is nearly the best.
function strongestLag(x, from, size, least, most) {
  const power = energy(x, from, size);
  if (power / size < 1e5) return { lag: 0, strength: 0 };  // a pause
  const strengths = [];
  for (let lag = least; lag <= most; ++lag) {
    let sum = 0;
    for (let i = 0; i < size; ++i) sum += x[from + i] * x[from + i + lag];
    strengths.push(sum / Math.sqrt(power * energy(x, from + lag, size)));
  }
  const best = Math.max(...strengths);
  const isPeak = (s, i) => s > 0.9 * best && s >= (strengths[i - 1] ?? -1) && s >= (strengths[i + 1] ?? -1);
  const at = strengths.findIndex(isPeak);
  return { lag: least + at, strength: strengths[at] };
}

function energy(x, from, size) {
  let sum = 0;
  for (let i = from; i < from + size; ++i) sum += x[i] * x[i];
  return sum;
}

// How alike two sounds are, from -1 to 1: correlation of their loudness over time, wherever they fit best (encoders
// begin with some silence).
export function likeness(a, b) {
  const [x, y] = [envelope(a), envelope(b)];
  let best = -1;
  for (let shift = -8; shift <= 8; ++shift) best = Math.max(best, correlation(x, y, shift));
  return best;
}

function envelope(samples) {
  const size = rate / 100;
  return Array.from({ length: Math.floor(samples.length / size) },
    (_, i) => loudness(samples.subarray(i * size, (i + 1) * size)));
}

function correlation(x, y, shift) {
  const pairs = x.map((value, i) => [value, y[i + shift]]).filter(([, other]) => other !== undefined);
  const mean = (k) => pairs.reduce((sum, pair) => sum + pair[k], 0) / pairs.length;
  const [mx, my] = [mean(0), mean(1)];
  let [xy, xx, yy] = [0, 0, 0];
  for (const [a, b] of pairs) {
    xy += (a - mx) * (b - my);
    xx += (a - mx) ** 2;
    yy += (b - my) ** 2;
  }
  return xy / Math.sqrt(xx * yy);
}
