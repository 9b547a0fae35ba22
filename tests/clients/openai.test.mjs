// OpenAI's package as applications use it: their voices, models, options, errors and retries.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sharedServer, until, withServer } from "../server/harness.mjs";
import { readPcm } from "../server/sound.mjs";
import { guardedBy, load, onePlace, oneThread } from "./clients.mjs";
import { aacSeconds, assertSame, assertSilence, heard, likeness, loudness, pitch, seconds } from "./heard.mjs";

const { default: OpenAI } = await load("openai");
const server = sharedServer({ before, after }, oneThread);
const clientOf = (which, options = {}) => new OpenAI({ baseURL: `${which.url}/v1`, apiKey: "none", maxRetries: 0, ...options });
const client = () => clientOf(server());
const input = "The train leaves at noon.";
const speech = (body, options) => client().audio.speech.create({ model: "tts-1", voice: "nova", input, ...body }, options);
const bytesOf = async (answer) => Buffer.from(await answer.arrayBuffer());
const say = async (body, options) => bytesOf(await speech(body, options));
const samplesOf = async (body) => readPcm(await say({ response_format: "pcm", seed: 3, ...body }));
let first;
const plain = async () => (first ??= await samplesOf({}));
const warningsOf = (answer) => JSON.parse(answer.headers.get("x-shoal-warnings") ?? "[]");

const voices = ["alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse", "marin", "cedar"];
const models = ["tts-1", "tts-1-hd", "gpt-4o-mini-tts", "tts-1-1106", "tts-1-hd-1106", "gpt-4o-mini-tts-2025-03-20",
  "gpt-4o-mini-tts-2025-12-15"];

for (const format of ["mp3", "opus", "flac", "wav"]) {
  test(`${format} is the same sound as pcm, streamed and whole`, async () => {
    for (const stream of [true, false]) {
      const samples = heard(await say({ response_format: format, seed: 3, stream }), format);
      assert.ok(Math.abs(seconds(samples) - seconds(await plain())) < 0.2, `${seconds(samples)} s, not ${seconds(await plain())} s`);
      assert.ok(likeness(samples, await plain()) > 0.95, `a likeness of ${likeness(samples, await plain())}`);
    }
  });
}

test("aac is as long as pcm", async () => {
  const length = aacSeconds(await say({ response_format: "aac", seed: 3 }));
  assert.ok(Math.abs(length - seconds(await plain())) < 0.3, `${length} s, not ${seconds(await plain())} s`);
});

test("a stream equals the whole file byte for byte with the same seed", async () => {
  const pieces = [];
  for await (const piece of (await speech({ response_format: "pcm", seed: 3 })).body) pieces.push(piece);
  assert.ok(pieces.length > 1, "in one piece");
  assertSame(readPcm(Buffer.concat(pieces)), await samplesOf({ stream: false }));
});

test("OpenAI's voice names speak with eight voices", async () => {
  const sounds = [];
  for (const voice of voices) sounds.push((await say({ voice, response_format: "pcm", seed: 3 })).toString("base64"));
  assert.equal(new Set(sounds).size, 8);
});

test("nova is a female voice, onyx a male one", async () => {
  const [nova, onyx] = [pitch(await plain()), pitch(await samplesOf({ voice: "onyx" }))];
  assert.ok(nova > 1.25 * onyx, `nova ${nova} Hz, onyx ${onyx} Hz`);
});

test("a voice may be given as an object", async () => {
  assertSame(await samplesOf({ voice: { id: "nova" } }), await plain());
});

test("every name of OpenAI's speech models speaks, those with a date too", async () => {
  for (const model of models) assertSame(await samplesOf({ model }), await plain(), model);
});

test("models are listed with the names that stand for them", async () => {
  const listed = [];
  for await (const model of client().models.list()) listed.push(model.id);
  for (const name of ["tts-1", "tts-1-hd", "gpt-4o-mini-tts"]) assert.ok(listed.includes(name), `${name} in ${listed}`);
  for (const name of models) assert.equal((await client().models.retrieve(name)).object, "model");
});

for (const speed of [0.25, 0.5, 1.5, 2, 4]) {
  test(`speed ${speed} changes the length and keeps the pitch`, async () => {
    const changed = await samplesOf({ speed });
    const factor = changed.length / (await plain()).length * speed;
    assert.ok(Math.abs(factor - 1) < 0.1, `${seconds(await plain())} s became ${seconds(changed)} s`);
    if (speed > 2) return;  // too little sound to measure
    const kept = pitch(changed) / pitch(await plain());
    assert.ok(kept > 0.9 && kept < 1.1, `the pitch is ${kept} of what it was`);
  });
}

test("a changed speed sounds the same streamed and whole", async () => {
  assertSame(await samplesOf({ speed: 1.5, stream: true }), await samplesOf({ speed: 1.5, stream: false }));
});

test("speed 1, which clients send by default, changes nothing", async () => {
  assertSame(await samplesOf({ speed: 1 }), await plain());
});

test("instructions that a model cannot follow are accepted with a warning", async () => {
  const answer = await speech({ response_format: "pcm", seed: 3, instructions: "Whisper, and smile." });
  assert.match(warningsOf(answer).join(" "), /instructions/);
  assertSame(readPcm(await bytesOf(answer)), await plain());
});

for (const [text, response_format] of [["🎉", "pcm"], ["🎉🎊 🥳", "mp3"], ["...", "wav"], ["—", "opus"]]) {
  test(`"${text}" is a short silence with a warning, as ${response_format}`, async () => {
    const answer = await speech({ input: text, response_format });
    assert.ok(warningsOf(answer).length > 0, "no warning");
    assertSilence(heard(await bytesOf(answer), response_format));
  });
}

test("a sentence with emoji is spoken", async () => {
  const samples = await samplesOf({ input: "Well done! 🎉 You have won 🏆 the first prize. 👏" });
  assert.ok(seconds(samples) > 1 && loudness(samples) > 100);
});

test("an error has status, code, param and the request's id", async () => {
  const error = await speech({ response_format: "mp4" }).then(() => assert.fail("taken"), (thrown) => thrown);
  assert.ok(error instanceof OpenAI.BadRequestError, String(error));
  assert.deepEqual([error.status, error.param, error.type], [400, "response_format", "invalid_request_error"]);
  assert.ok(error.requestID);
});

const story = "Every morning the fishermen went out before the sun was up. ".repeat(20);

test("the client retries until there is a place", withServer(onePlace, async (narrow) => {
  const request = { model: "tts-1", voice: "onyx", response_format: "pcm" };
  const first = (await clientOf(narrow).audio.speech.create({ ...request, input: story })).body.getReader();
  await first.read();
  const refused = await clientOf(narrow).audio.speech.create({ ...request, input }).then(() => null, (error) => error);
  assert.ok(refused instanceof OpenAI.RateLimitError, String(refused));
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  const second = clientOf(narrow, { maxRetries: 10 }).audio.speech.create({ ...request, input });
  await until("a refusal of the second", async () => {
    const metrics = await narrow.metrics();
    return metrics.value("shoal_http_requests_total", { outcome: "refused" }) >= 2;
  });
  await first.cancel();
  assert.ok(seconds(readPcm(await bytesOf(await second))) > 1);
}));

test("an abort ends the speech", async () => {
  const abort = new AbortController();
  const answer = await speech({ input: story, response_format: "pcm" }, { signal: abort.signal });
  const reader = answer.body.getReader();
  await reader.read();
  abort.abort();
  await assert.rejects(async () => {
    for (;;) if ((await reader.read()).done) break;
  }, { name: "AbortError" });
  await until("no speech", async () => (await server().speaking()) === 0);
});

test("the client's time limit ends the speech", async () => {
  const error = await client().audio.speech.create({ model: "tts-1", voice: "nova", input: story.repeat(8), stream: false },
    { timeout: 300 }).then(() => null, (thrown) => thrown);
  assert.ok(error instanceof OpenAI.APIConnectionTimeoutError, String(error));
  await until("no speech", async () => (await server().speaking()) === 0);
});

// The deadline and what is made ahead are shorter here than by default, so that less sound will do: at 48 kHz more of it
// than sockets hold.
const hasty = { flags: ["--prefetch-s", "1"], env: { ...oneThread.env, SHOAL_REQUEST_TIMEOUT_S: "20" } };
test("a listener that plays while receiving hears everything, even beyond the deadline", withServer(hasty, async (short) => {
  const request = { model: "tts-1", voice: "nova", input: story.slice(0, 720), response_format: "pcm", sample_rate: 48000, seed: 1 };
  const answer = await clientOf(short).audio.speech.create(request);
  const pieces = [];
  const start = performance.now();
  let played_ms = 0;
  for await (const piece of answer.body) {
    pieces.push(piece);
    played_ms += piece.length / 96;
    if (performance.now() - start < 22_000) await sleep(Math.max(0, start + played_ms - performance.now()));
  }
  assertSame(readPcm(Buffer.concat(pieces)), readPcm(await bytesOf(await client().audio.speech.create(request))));
}));

test("a valid key is accepted, a wrong one refused", withServer(guardedBy("sesame"), async (guarded) => {
  const request = { model: "tts-1", voice: "alloy", input };
  await assert.rejects(clientOf(guarded, { apiKey: "wrong" }).audio.speech.create(request), OpenAI.AuthenticationError);
  const answer = await clientOf(guarded, { apiKey: "sesame" }).audio.speech.create(request);
  assert.ok(seconds(heard(await bytesOf(answer), "mp3")) > 1);
}));
