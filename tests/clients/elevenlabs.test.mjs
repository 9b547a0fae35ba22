// ElevenLabs' own package, and LiveKit's plugin for their service, with their address changed to this server's.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer, until, withServer } from "../server/harness.mjs";
import { guardedBy, load, oneThread } from "./clients.mjs";
import { heard, likeness, loudness, pitch, seconds } from "./heard.mjs";

const { ElevenLabsClient, ElevenLabsError, ElevenLabs } = await load("@elevenlabs/elevenlabs-js");
const { initializeLogger, mergeFrames, tts } = await load("@livekit/agents");
const { TTS } = await load("@livekit/agents-plugin-elevenlabs");
initializeLogger({ pretty: false, level: "silent" });

const server = sharedServer({ before, after }, oneThread);
const text = "The train leaves at noon.";
const rate = 22_050;  // of LiveKit's plugin
const clientOf = (which = server(), apiKey = "none") => new ElevenLabsClient({ apiKey, baseUrl: which.url, maxRetries: 0 });
const convert = (request, voice = "nora", client = clientOf()) => client.textToSpeech.convert(voice, { text, ...request });

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
const pcm = { outputFormat: "pcm_24000", seed: 3 };
const say = async (request, ...more) => heard(await collect(await convert({ ...pcm, ...request }, ...more)), "pcm");

test("speaks without any option: mp3 at 44.1 kHz", async () => {
  const { data, rawResponse } = await convert({}).withRawResponse();
  assert.equal(rawResponse.headers.get("content-type"), "audio/mpeg");
  const samples = heard(await collect(data), "mp3");
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
});

test("the example of the package's documents speaks", async () => {
  const stream = await clientOf().textToSpeech.convert("JBFqnCBsd6RMkjVDRZzb", {
    text: "The first move is what sets everything in motion.", modelId: "eleven_v3", outputFormat: "mp3_44100_128",
  });
  assert.ok(seconds(heard(await collect(stream), "mp3")) > 1.5);
});

for (const [outputFormat, format] of [["mp3_22050_32", "mp3"], ["opus_48000_64", "opus"], ["wav_24000", "wav"]]) {
  test(`speaks ${outputFormat}`, async () => {
    const samples = heard(await collect(await convert({ outputFormat, seed: 3 })), format);
    assert.ok(likeness(samples, await say({})) > 0.95);
  });
}

test("speaks for telephones", async () => {
  const [ulaw, alaw] = await Promise.all(["ulaw_8000", "alaw_8000"].map(async (outputFormat) =>
    collect(await convert({ outputFormat, seed: 3 }))));
  assert.ok(ulaw.length > 0.8 * 8000);
  assert.equal(alaw.length, ulaw.length);
});

test("a stream is the whole", async () => {
  const stream = await clientOf().textToSpeech.stream("nora", { text, ...pcm });
  assert.deepEqual(heard(await collect(stream), "pcm"), await say({}));
});

test("sound comes with a place for times, whole and as a stream", async () => {
  const whole = await clientOf().textToSpeech.convertWithTimestamps("nora", { text, ...pcm });
  const want = await say({});
  assert.deepEqual(heard(Buffer.from(whole.audioBase64, "base64"), "pcm"), want);
  const pieces = [];
  for await (const piece of await clientOf().textToSpeech.streamWithTimestamps("nora", { text, ...pcm })) {
    pieces.push(Buffer.from(piece.audioBase64, "base64"));
  }
  assert.deepEqual(heard(Buffer.concat(pieces), "pcm"), want);
});

test("settings: speed is followed, the others are named in warnings", async () => {
  const slow = await say({ voiceSettings: { speed: 0.5, stability: 0.5 } });
  const { data, rawResponse } = await convert({ ...pcm, voiceSettings: { speed: 2, stability: 0.9 } }).withRawResponse();
  assert.ok(slow.length > 2.5 * heard(await collect(data), "pcm").length);
  assert.match(rawResponse.headers.get("x-shoal-warnings"), /stability/);
});

test("voices and models are listed, and the voices differ", async () => {
  const { voices } = await clientOf().voices.getAll();
  const ids = voices.map((voice) => voice.voiceId);
  assert.ok(ids.includes("nora") && ids.includes("oscar"), ids.join());
  assert.equal((await clientOf().voices.get("nora")).voiceId, "nora");
  const [model] = await clientOf().models.list();
  assert.ok(model.modelId && model.canDoTextToSpeech);
  const [nora, oscar] = [pitch(await say({ modelId: model.modelId })), pitch(await say({}, "oscar"))];
  assert.ok(nora > 1.25 * oscar, `nora ${nora} Hz, oscar ${oscar} Hz`);
});

test("errors have the package's classes and say what was wrong", async () => {
  const thrown = (...request) => convert(...request).then(() => null, (error) => error);
  const field = await thrown({ seed: -1 });
  assert.ok(field instanceof ElevenLabs.UnprocessableEntityError, String(field));
  assert.match(JSON.stringify(field.body), /seed/);
  const voice = await thrown({}, "nobody here");
  assert.ok(voice instanceof ElevenLabsError, String(voice));
  assert.deepEqual([voice.statusCode, voice.body.detail.status], [404, "voice_not_found"]);
});

test("an abort ends the speech", async () => {
  const abort = new AbortController();
  const stream = await clientOf().textToSpeech.stream("nora", { text: text.repeat(30) }, { abortSignal: abort.signal });
  await stream.getReader().read();
  abort.abort();
  await until("no speech", async () => (await server().speaking()) === 0);
});

test("a valid key is accepted, a wrong one refused", withServer(guardedBy("sesame"), async (guarded) => {
  const error = await convert({}, "nora", clientOf(guarded, "wrong")).then(() => null, (thrown) => thrown);
  assert.deepEqual([error?.statusCode, error?.body.detail.status], [401, "invalid_api_key"]);
  assert.ok((await say({}, "nora", clientOf(guarded, "sesame"))).length > 0);
  assert.ok((await samplesOf(speak(ttsOf(guarded, { apiKey: "sesame" }), text))).length > 0.8 * rate);
}));

// LiveKit's plugin: its streams are contexts of multi-stream-input.
function ttsOf(which = server(), options = {}) {
  const one = new TTS({ baseURL: `${which.url}/v1`, apiKey: "none", ...options });
  one.errors = [];
  one.on("error", (event) => one.errors.push(event.error));
  return one;
}
function speak(one, words) {
  const stream = one.stream();
  for (const piece of words.match(/\S+\s*/g)) stream.pushText(piece);
  stream.endInput();
  return stream;
}
async function samplesOf(stream) {
  const frames = [];
  for await (const audio of stream) if (audio !== tts.SynthesizeStream.END_OF_STREAM) frames.push(audio.frame);
  assert.ok(frames.length > 0, "no sound at all");
  const { data, sampleRate } = mergeFrames(frames);
  assert.equal(sampleRate, rate);
  return data;
}
test("LiveKit's plugin speaks with its defaults, whole and word by word", async () => {
  const one = ttsOf();
  for (const stream of [one.synthesize(text), speak(one, text)]) {
    const samples = await samplesOf(stream);
    assert.ok(samples.length > 0.8 * rate && loudness(samples) > 100);
  }
  assert.deepEqual(one.errors, []);
  await one.close();
});

test("LiveKit's plugin speaks several streams on one connection", async () => {
  const one = ttsOf(undefined, { voiceId: "nora" });
  const [first, second] = await Promise.all([
    samplesOf(speak(one, "You have won the first prize. Shall I read the letter to you?")), samplesOf(speak(one, text)),
  ]);
  assert.ok(first.length > 1.5 * second.length, `${first.length} and ${second.length} samples`);
  const third = await samplesOf(speak(one, text));
  assert.ok(third.length > 0.8 * rate);
  assert.deepEqual(one.errors, []);
  await one.close();
});

test("LiveKit's plugin lists voices, and hears why a voice does not speak", async () => {
  assert.ok((await ttsOf().listVoices()).some(({ id }) => id === "nora"));
  const one = ttsOf(undefined, { voiceId: "nobody here" });
  const failed = new Promise((resolve) => one.on("error", resolve));
  const stream = one.synthesize(text);
  const main = stream.mainTask.bind(stream);
  stream.mainTask = () => main().catch(() => {});
  assert.equal((await failed).error.statusCode, 404);
});
