// Fish Audio's own package for their hosted service, with its address changed to this server's.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer, until, withServer } from "../server/harness.mjs";
import { clip } from "../server/sound.mjs";
import { guardedBy, load, onePlace, oneThread } from "./clients.mjs";
import { assertSilence, heard, likeness, loudness, pitch, seconds } from "./heard.mjs";

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

test("speaks without any option: s1, mp3", async () => {
  const { data, rawResponse } = await convert({}).withRawResponse();
  assert.equal(rawResponse.headers.get("content-type"), "audio/mpeg");
  const samples = heard(await collect(data), "mp3");
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
});

for (const format of ["mp3", "opus", "wav"]) {
  test(`speaks ${format}, playable from its first byte`, async () => {
    assert.ok(likeness(await say({ format, seed: 3 }), await say({ format: "mp3", seed: 3 })) > 0.95);
  });
}

test("speaks pcm at the requested rate", async () => {
  const samples = await say({ format: "pcm", sample_rate: 24000, seed: 3 });
  assert.ok(likeness(samples, await say({ format: "mp3", seed: 3 })) > 0.95);
});

test("sound arrives while more is being made", async () => {
  const reader = (await convert({ text: text.repeat(30) })).getReader();
  const first = await reader.read();
  assert.ok(!first.done && first.value.length > 0);
  assert.notEqual((await server().metrics()).value("shoal_engine_requests"), 0, "all was made before the first piece came");
  await reader.cancel();
  await until("no speech", async () => (await server().speaking()) === 0);
});

for (const backend of ["s1", "s2-pro", "speech-1.6"]) {
  test(`the header \`model: ${backend}\` of the hosted service is no hindrance`, async () => {
    assert.ok(seconds(await say({}, { backend })) > 0.8);
  });
}

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

test("prosody, bitrates, latency and sampling are accepted", async () => {
  const request = { format: "wav", seed: 3, temperature: 0.7, top_p: 0.7, chunk_length: 200, normalize: true, latency: "balanced" };
  const plain = await say(request);
  const fast = await say({ ...request, prosody: { speed: 2, volume: 0 } });
  assert.ok(Math.abs(2 * fast.length / plain.length - 1) < 0.1, `${seconds(plain)} s, ${seconds(fast)} s`);
  const quiet = await say({ ...request, prosody: { volume: -20 } });
  const ratio = loudness(quiet) / loudness(plain);
  assert.ok(ratio > 0.08 && ratio < 0.12, `-20 dB are ${ratio}`);
  // MP3 at 16 kHz, the rate of the built-in voice, has no 192 kbit/s.
  for (const mp3_bitrate of [64, 128]) assert.ok(seconds(await say({ format: "mp3", mp3_bitrate })) > 0.8);
  for (const opus_bitrate of [-1000, 24, 32, 48, 64]) assert.ok(seconds(await say({ format: "opus", opus_bitrate })) > 0.8);
});

test("emoji alone are a short silence", async () => {
  const { data, rawResponse } = await convert({ text: "🎉🎉" }).withRawResponse();
  assert.ok(rawResponse.headers.get("x-shoal-warnings"));
  assertSilence(heard(await collect(data), "mp3"));
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

test("the client retries until there is a place", withServer(onePlace, async (narrow) => {
  const first = (await convert({ text: text.repeat(30) }, { which: narrow })).getReader();
  await first.read();
  const refused = await convert({}, { which: narrow }).then(() => null, (error) => error);
  assert.equal(refused?.statusCode, 429);
  const second = convert({}, { which: narrow, maxRetries: 10 });
  await until("a refusal of the second", async () =>
    (await narrow.metrics()).value("shoal_http_requests_total", { outcome: "refused" }) >= 2);
  await first.cancel();
  assert.ok(seconds(heard(await collect(await second), "mp3")) > 0.8);
}));

test("an abort ends the speech", async () => {
  const abort = new AbortController();
  const reader = (await convert({ text: text.repeat(30) }, { abortSignal: abort.signal })).getReader();
  await reader.read();
  abort.abort();
  await until("no speech", async () => (await server().speaking()) === 0);
});

test("a valid key is accepted, a wrong one refused", withServer(guardedBy("sesame"), async (guarded) => {
  const error = await convert({}, { which: guarded, apiKey: "wrong" }).then(() => null, (thrown) => thrown);
  assert.equal(error?.statusCode, 401);
  assert.ok((await say({}, { which: guarded, apiKey: "sesame" })).length > 0);
}));
