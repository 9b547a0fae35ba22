// LiveKit's agents with their plugin for OpenAI's API: what a voice agent says, sentence by sentence.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer, until, withServer } from "../server/harness.mjs";
import { guardedBy, load, oneThread } from "./clients.mjs";
import { assertSilence, loudness, pitch, rate, seconds } from "./heard.mjs";

const { initializeLogger, mergeFrames, tokenize, tts, voice } = await load("@livekit/agents");
const { TTS } = await load("@livekit/agents-plugin-openai");
initializeLogger({ pretty: false, level: "silent" });

const server = sharedServer({ before, after }, oneThread);
const text = "The train leaves at noon.";

// A TTS with every error that it reported, which an agent would see.
function ttsOf(which, options = {}) {
  const one = new TTS({ baseURL: `${which.url}/v1`, apiKey: "none", ...options });
  one.errors = [];
  one.on("error", (event) => one.errors.push(event.error));
  return one;
}

// The framework awaits nobody's promise of this task, and its error would end this process.
function withoutOrphan(stream) {
  const main = stream.mainTask.bind(stream);
  stream.mainTask = () => main().catch(() => {});
  return stream;
}

// The samples of everything that a stream of the framework gave.
async function samplesOf(stream) {
  const frames = [];
  for await (const audio of stream) if (audio !== tts.SynthesizeStream.END_OF_STREAM) frames.push(audio.frame);
  assert.ok(frames.length > 0, "no sound at all");
  const { data, sampleRate } = mergeFrames(frames);
  assert.equal(sampleRate, rate);
  return data;
}

async function say(words, options) {
  const one = ttsOf(server(), options);
  const samples = await samplesOf(one.synthesize(words));
  assert.deepEqual(one.errors, []);
  return samples;
}

test("speaks with the defaults of the plugin: tts-1, alloy, speed 1", async () => {
  const samples = await say(text);
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
});

test("voices differ", async () => {
  const [nova, onyx] = [pitch(await say(text, { voice: "nova" })), pitch(await say(text, { voice: "onyx" }))];
  assert.ok(nova > 1.25 * onyx, `nova ${nova} Hz, onyx ${onyx} Hz`);
});

test("instructions, speed and a model with a date", async () => {
  const model = "gpt-4o-mini-tts-2025-12-15";
  const slow = await say(text, { model, instructions: "Speak calmly.", speed: 0.5 });
  const fast = await say(text, { model, instructions: "Speak calmly.", speed: 2 });
  assert.ok(slow.length > 2.5 * fast.length, `${seconds(slow)} s, ${seconds(fast)} s`);
});

for (const words of ["🎉", "🎉🎊🥳", "..."]) {
  test(`"${words}" is a short silence, not an error`, async () => {
    assertSilence(await say(words));
  });
}

// Speaks as an agent does whose model writes word by word.
async function speakInPieces(one, words) {
  const sentences = new tokenize.basic.SentenceTokenizer({ minSentenceLength: 1 });
  const stream = new tts.StreamAdapter(one, sentences).stream();
  const sound = samplesOf(stream);
  for (const piece of words.match(/\S+\s*/g)) stream.pushText(piece);
  stream.endInput();
  return sound;
}

test("sentences are spoken one after the other, one of emoji between them", async () => {
  const one = ttsOf(server());
  const samples = await speakInPieces(one, "You have won the first prize. 🎉🎉🎉! Shall I read the letter to you? 👏");
  assert.deepEqual(one.errors, []);
  assert.ok(seconds(samples) > 2.5, `${seconds(samples)} s`);
});

// A loudspeaker that has played what it gets at once.
class Loudspeaker extends voice.AudioOutput {
  frames = [];
  constructor() {
    super(rate);
  }
  async captureFrame(frame) {
    await super.captureFrame(frame);
    this.frames.push(frame);
  }
  flush() {
    super.flush();
    const samples = this.frames.reduce((sum, frame) => sum + frame.samplesPerChannel, 0);
    this.onPlaybackFinished({ playbackPosition: samples / rate, interrupted: false });
  }
  clearBuffer() {}
}

// A session closes at its fourth error. By default it takes emoji out of the text itself.
test("an agent continues after sentences with nothing to say", async () => {
  const session = new voice.AgentSession({ tts: ttsOf(server()), ttsTextTransforms: [] });
  const errors = [];
  session.on(voice.AgentSessionEventTypes.Error, (event) => errors.push(event.error));
  let closed = false;
  session.on(voice.AgentSessionEventTypes.Close, () => (closed = true));
  const speaker = new Loudspeaker();
  session.output.audio = speaker;
  await session.start({ agent: new voice.Agent({ instructions: "Say what you are told." }) });
  for (const words of ["🎉🎉", "...", "🎉", "—", "👏", text]) await session.say(words).waitForPlayout();
  assert.deepEqual(errors, []);
  assert.ok(!closed, "the session closed");
  const samples = mergeFrames(speaker.frames).data;
  assert.ok(seconds(samples) > 1 && loudness(samples) > 50);
  await session.close();
});

test("an error reaches the agent with its reason", async () => {
  const one = ttsOf(server(), { voice: "nobody here" });
  const failed = new Promise((resolve) => one.on("error", resolve));
  withoutOrphan(one.synthesize(text));
  const { error, recoverable } = await failed;
  assert.deepEqual([error.status, error.param, recoverable], [400, "voice", false]);
});

test("closing ends the speech", async () => {
  const one = ttsOf(server());
  const stream = withoutOrphan(one.synthesize(text.repeat(30)));
  await until("speech", async () => (await server().speaking()) > 0);
  stream.close();
  await one.close();
  await until("no speech", async () => (await server().speaking()) === 0);
});

test("a valid key is accepted", withServer(guardedBy("sesame"), async (guarded) => {
  const samples = await samplesOf(ttsOf(guarded, { apiKey: "sesame" }).synthesize(text));
  assert.ok(seconds(samples) > 0.8);
}));
