// Fish Audio's own package for their hosted service, with its address changed to this server's.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer } from "../server/harness.mjs";
import { clip } from "../server/sound.mjs";
import { load, oneThread } from "./clients.mjs";
import { heard, likeness, loudness, pitch, seconds } from "./heard.mjs";

const { FishAudioClient, FishAudioError, UnprocessableEntityError } = await load("fish-audio");
const server = sharedServer({ before, after }, oneThread);
const text = "The train leaves at noon.";
const clientOf = (which = server(), apiKey = "none") => new FishAudioClient({ apiKey, baseUrl: which.url });
const convert = (request, { which, apiKey, backend, ...options } = {}) =>
  clientOf(which, apiKey).textToSpeech.convert({ text, ...request }, backend, { maxRetries: 0, ...options });

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
const say = async (request, options) => heard(await collect(await convert(request, options)), request?.format ?? "mp3");

for (const format of ["mp3", "opus", "wav"]) {
  test(`speaks ${format}, playable from its first byte`, async () => {
    assert.ok(likeness(await say({ format, seed: 3 }), await say({ format: "mp3", seed: 3 })) > 0.95);
  });
}

test("speaks pcm at the rate that was asked for", async () => {
  const samples = await say({ format: "pcm", sample_rate: 24000, seed: 3 });
  assert.ok(likeness(samples, await say({ format: "mp3", seed: 3 })) > 0.95);
});

test("a stored voice is followed by its reference_id", async () => {
  const pitchOf = async (reference_id) => pitch(await say({ reference_id, format: "wav" }));
  const [nora, oscar] = [await pitchOf("nora"), await pitchOf("oscar")];
  assert.ok(nora > 1.25 * oscar, `nora ${nora} Hz, oscar ${oscar} Hz`);
});

test("a file is followed as a reference", async () => {
  const request = { format: "pcm", sample_rate: 24000, seed: 3 };
  const audio = new File([clip(3, 16000, 110)], "me.wav");
  const followed = await say({ ...request, references: [{ audio, text: "Hm, hm, hm." }] });
  assert.notDeepEqual(followed, await say(request));
});

test("prosody, bitrates, latency and sampling are taken", async () => {
  const request = { format: "wav", seed: 3, temperature: 0.7, top_p: 0.7, chunk_length: 200, normalize: true, latency: "balanced" };
  const plain = await say(request);
  const fast = await say({ ...request, prosody: { speed: 2, volume: 0 } });
  assert.ok(Math.abs(2 * fast.length / plain.length - 1) < 0.1, `${seconds(plain)} s, ${seconds(fast)} s`);
  const quiet = await say({ ...request, prosody: { volume: -20 } });
  const ratio = loudness(quiet) / loudness(plain);
  assert.ok(ratio > 0.08 && ratio < 0.12, `-20 dB are ${ratio}`);
  for (const mp3_bitrate of [64, 128, 192]) assert.ok(seconds(await say({ format: "mp3", mp3_bitrate })) > 0.8);
  for (const opus_bitrate of [-1000, 24, 32, 48, 64]) assert.ok(seconds(await say({ format: "opus", opus_bitrate })) > 0.8);
});

test("errors have the package's classes and say what was wrong", async () => {
  const thrown = (request) => convert(request).then(() => null, (error) => error);
  const field = await thrown({ format: "mp4" });
  assert.ok(field instanceof UnprocessableEntityError, String(field));
  assert.match(JSON.stringify(field.body), /format/);
  const unknown = await thrown({ reference_id: "nobody here" });
  assert.ok(unknown instanceof FishAudioError, String(unknown));
  assert.equal(unknown.statusCode, 404);
});
