// Vercel's AI SDK with its provider for OpenAI's API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer, until, withServer } from "../server/harness.mjs";
import { guardedBy, load, onePlace, oneThread } from "./clients.mjs";
import { assertSilence, heard, loudness, pitch, seconds } from "./heard.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const { APICallError, RetryError, experimental_generateSpeech: generateSpeech } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");

const server = sharedServer({ before, after }, oneThread);
const text = "The train leaves at noon.";
const providerOf = (which, apiKey = "none") => createOpenAI({ baseURL: `${which.url}/v1`, apiKey });
const generate = ({ which = server(), model = "tts-1", apiKey, ...options } = {}) =>
  generateSpeech({ model: providerOf(which, apiKey).speech(model), text, maxRetries: 0, ...options });
const soundOf = (result, format) => heard(Buffer.from(result.audio.uint8Array), format);
const warningsOf = (result) => JSON.parse(result.responses[0].headers["x-shoal-warnings"] ?? "[]");

test("speaks without any option: alloy, mp3", async () => {
  const result = await generate();
  assert.equal(result.audio.mediaType, "audio/mpeg");
  const samples = soundOf(result, "mp3");
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
  assert.deepEqual(result.warnings, []);
});

for (const outputFormat of ["mp3", "opus", "flac", "wav", "pcm"]) {
  test(`speaks ${outputFormat}`, async () => {
    const samples = soundOf(await generate({ outputFormat, voice: "coral" }), outputFormat);
    assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
  });
}

test("voices differ", async () => {
  const pitchOf = async (voice) => pitch(soundOf(await generate({ voice, outputFormat: "pcm" }), "pcm"));
  const [nova, onyx] = [await pitchOf("nova"), await pitchOf("onyx")];
  assert.ok(nova > 1.25 * onyx, `nova ${nova} Hz, onyx ${onyx} Hz`);
});

test("a model with a date speaks", async () => {
  const result = await generate({ model: "gpt-4o-mini-tts-2025-12-15", outputFormat: "pcm" });
  assert.ok(seconds(soundOf(result, "pcm")) > 0.8);
});

test("speed changes the length", async () => {
  const lengthAt = async (speed) => seconds(soundOf(await generate({ speed, voice: "onyx", outputFormat: "pcm" }), "pcm"));
  const [slow, fast] = [await lengthAt(0.5), await lengthAt(2)];
  assert.ok(slow > 2.5 * fast, `${slow} s, ${fast} s`);
});

test("instructions are accepted with a warning", async () => {
  const result = await generate({ instructions: "Speak like a pirate.", outputFormat: "pcm" });
  assert.match(warningsOf(result).join(" "), /instructions/);
});

test("emoji alone are a short silence", async () => {
  const result = await generate({ text: "🎉🎉", outputFormat: "wav" });
  assert.ok(warningsOf(result).length > 0);
  assertSilence(soundOf(result, "wav"));
});

test("an error names its reason", async () => {
  const error = await generate({ voice: "nobody here" }).then(() => null, (thrown) => thrown);
  assert.ok(APICallError.isInstance(error), String(error));
  assert.deepEqual([error.statusCode, error.isRetryable], [400, false]);
  assert.match(error.message, /voice/);
});

test("the client retries until there is a place", withServer(onePlace, async (narrow) => {
  const taken = await narrow.http.open("POST", "/v1/audio/speech",
    { body: { model: "tts-1", voice: "alloy", input: text.repeat(20), response_format: "pcm" } });
  await new Promise((resolve) => taken.once("data", resolve));
  taken.pause();
  const refused = await generate({ which: narrow, maxRetries: 1 }).then(() => null, (thrown) => thrown);
  assert.ok(RetryError.isInstance(refused) && refused.lastError.statusCode === 429, String(refused));
  const waiting = generate({ which: narrow, maxRetries: 10, outputFormat: "pcm" });
  await until("a refusal", async () =>
    (await narrow.metrics()).value("shoal_http_requests_total", { outcome: "refused" }) >= 3);
  taken.destroy();
  assert.ok(seconds(soundOf(await waiting, "pcm")) > 0.8);
}));

test("an abort ends the speech", async () => {
  const abort = new AbortController();
  const speaking = generate({ text: text.repeat(30), abortSignal: abort.signal });
  await until("speech", async () => (await server().speaking()) > 0);
  abort.abort();
  await assert.rejects(speaking, { name: "AbortError" });
  await until("no speech", async () => (await server().speaking()) === 0);
});

test("a valid key is accepted, a wrong one refused", withServer(guardedBy("sesame"), async (guarded) => {
  const error = await generate({ which: guarded, apiKey: "wrong" }).then(() => null, (thrown) => thrown);
  assert.equal(error?.statusCode, 401);
  assert.ok(soundOf(await generate({ which: guarded, apiKey: "sesame" }), "mp3").length > 0);
}));
