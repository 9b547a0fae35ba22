// Mastra's voice for OpenAI's API.
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { after, before, test } from "node:test";
import { sharedServer, withServer } from "../server/harness.mjs";
import { guardedBy, load, oneThread } from "./clients.mjs";
import { assertSame, assertSilence, heard, likeness, loudness, pitch, seconds } from "./heard.mjs";

const { OpenAIVoice } = await load("@mastra/voice-openai");
const server = sharedServer({ before, after }, oneThread);
const text = "The train leaves at noon.";

function voiceOf(which, { name = "tts-1", apiKey = "none", speaker, ...options } = {}) {
  const model = { name, apiKey, options: { baseURL: `${which.url}/v1`, maxRetries: 0, ...options } };
  return new OpenAIVoice({ speechModel: model, listeningModel: { apiKey }, speaker });
}

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function say(options = {}, which = voiceOf(server()), words = text) {
  return heard(await collect(await which.speak(words, options)), options.responseFormat ?? "mp3");
}

test("speaks without any option: tts-1, alloy, mp3, speed 1", async () => {
  const samples = await say();
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
});

test("every format is the same sound", async () => {
  const plain = await say({ responseFormat: "pcm", seed: 3 });
  for (const responseFormat of ["mp3", "opus", "flac", "wav"]) {
    assert.ok(likeness(await say({ responseFormat, seed: 3 }), plain) > 0.95, responseFormat);
  }
});

test("every speaker that it lists speaks", async () => {
  const sounds = [];
  for (const { voiceId } of await voiceOf(server()).getSpeakers()) {
    sounds.push(Buffer.from((await say({ speaker: voiceId, responseFormat: "pcm", seed: 3 })).buffer).toString("base64"));
  }
  assert.ok(new Set(sounds).size >= 6, `${new Set(sounds).size} voices`);
});

test("the chosen speaker is the one that speaks", async () => {
  const pitchOf = async (speaker) => pitch(await say({ responseFormat: "pcm" }, voiceOf(server(), { speaker })));
  const [nova, onyx] = [await pitchOf("nova"), await pitchOf("onyx")];
  assert.ok(nova > 1.25 * onyx, `nova ${nova} Hz, onyx ${onyx} Hz`);
});

test("text may be a stream", async () => {
  const options = { responseFormat: "pcm", seed: 3 };
  const stream = Readable.from([text.slice(0, 12), text.slice(12)]);
  assertSame(await say(options, voiceOf(server()), stream), await say(options));
});

test("speed, instructions and a model with a date", async () => {
  const dated = voiceOf(server(), { name: "gpt-4o-mini-tts-2025-12-15" });
  const at = (speed) => say({ speed, responseFormat: "pcm", seed: 3, instructions: "Speak calmly." }, dated);
  const [slow, fast] = [await at(0.5), await at(2)];
  assert.ok(slow.length > 3.5 * fast.length && slow.length < 4.5 * fast.length, `${seconds(slow)} s, ${seconds(fast)} s`);
});

test("emoji alone are a short silence", async () => {
  assertSilence(await say({ responseFormat: "wav" }, voiceOf(server()), "🎉🎉"));
});

test("an error is OpenAI's", async () => {
  await assert.rejects(say({ speaker: "nobody here" }), { name: "Error", status: 400, param: "voice" });
});

test("a valid key is accepted, a wrong one refused", withServer(guardedBy("sesame"), async (guarded) => {
  await assert.rejects(say({}, voiceOf(guarded, { apiKey: "wrong" })), { status: 401 });
  assert.ok((await say({}, voiceOf(guarded, { apiKey: "sesame" }))).length > 0);
}));
