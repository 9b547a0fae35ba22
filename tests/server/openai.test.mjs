// The official `openai` client, unchanged.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openai } from "./clients.mjs";
import { Server, environment, program, sharedServer, until } from "./harness.mjs";
import { assertSpeech, magic, readPcm, readWav } from "./sound.mjs";

const server = sharedServer({ before, after });
const input = "The train leaves at noon.";
const long = "Every morning the fishermen went out before the sun was up. They took bread, cheese, and a lamp. " +
  "By noon the boats came back, low in the water, and the whole village came down to the harbour to see them. ";
const types = {
  mp3: ["audio/mpeg"], opus: ["audio/ogg", "audio/opus"], aac: ["audio/aac"], flac: ["audio/flac"], wav: ["audio/wav"],
  pcm: ["audio/pcm", "application/octet-stream"],
};

const { OpenAI, ...errors } = await openai();
const clientOf = (which, options = {}) =>
  new OpenAI({ baseURL: `${which.url}/v1`, apiKey: "none", maxRetries: 0, ...options });
const client = () => clientOf(server());
const model = async () => (await client().models.list()).data[0].id;
const speak = async (body, options) =>
  client().audio.speech.create({ model: await model(), voice: "default", input, ...body }, options);
const bytesOf = async (response) => Buffer.from(await response.arrayBuffer());

test("models can be listed and looked up", async () => {
  const models = (await client().models.list()).data;
  assert.ok(models.length >= 1);
  for (const each of models) {
    assert.equal(each.object, "model");
    assert.equal((await client().models.retrieve(each.id)).id, each.id);
  }
});

for (const format of Object.keys(types)) {
  test(`speaks ${format}`, async () => {
    const response = await speak({ response_format: format, seed: 7 });
    const type = response.headers.get("content-type").split(";")[0];
    assert.ok(types[format].includes(type), type);
    const bytes = await bytesOf(response);
    assert.ok(magic[format](bytes), `not ${format}: ${bytes.subarray(0, 16).toString("hex")}`);
    assert.ok(bytes.length > 2000, `${bytes.length} bytes`);
  });
}

test("the default format is mp3", async () => {
  assert.ok(magic.mp3(await bytesOf(await speak({}))));
});

test("sounds exactly like the command line", async () => {
  const path = join(server().dir, "said.wav");
  execFileSync(program, ["say", input, "--seed", "7", "-o", path], { env: environment({ SHOAL_CACHE_DIR: "none" }) });
  const said = readWav(readFileSync(path));
  assertSpeech(said.samples, said.rate);
  for (const stream of [true, false]) {
    const heard = readWav(await bytesOf(await speak({ response_format: "wav", seed: 7, stream })), { streamed: stream });
    assert.equal(heard.rate, said.rate);
    assert.deepEqual(heard.samples, said.samples);
  }
  const pcm = await bytesOf(await speak({ response_format: "pcm", seed: 7, sample_rate: said.rate }));
  assert.deepEqual(readPcm(pcm), said.samples);
});

test("pcm is at OpenAI's rate unless another is asked for", async () => {
  const { samples, rate } = readWav(await bytesOf(await speak({ response_format: "wav", seed: 7, stream: false })));
  const pcm = readPcm(await bytesOf(await speak({ response_format: "pcm", seed: 7 })));
  assert.ok(Math.abs(pcm.length / 24000 - samples.length / rate) < 0.05, `${pcm.length / 24000} s, ${samples.length / rate} s`);
  assertSpeech(pcm, 24000);
});

test("streams: sound comes while more is being made", async () => {
  const response = await speak({ input: long.repeat(3), response_format: "pcm", seed: 1 });
  const reader = response.body.getReader();
  const first = await reader.read();
  assert.ok(!first.done && first.value.length > 0);
  assert.notEqual(await server().speaking(), 0, "nothing was speaking any more at the first piece");
  let total = first.value.length;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) total += piece.value.length;
  assert.ok(total > 10 * first.value.length, `the first piece was ${first.value.length} of ${total} bytes`);
});

test("server-sent events carry the same sound", async () => {
  const plain = await bytesOf(await speak({ response_format: "pcm", seed: 9 }));
  const response = await speak({ response_format: "pcm", seed: 9, stream_format: "sse" });
  assert.equal(response.headers.get("content-type").split(";")[0], "text/event-stream");
  const events = (await response.text()).split("\n\n").filter((event) => event).map((event) => {
    const data = event.split("\n").find((line) => line.startsWith("data: "));
    return JSON.parse(data.slice(6));
  });
  const done = events.pop();
  assert.equal(done.type, "speech.audio.done");
  assert.ok(Number.isInteger(done.usage.total_tokens), JSON.stringify(done));
  assert.ok(events.length > 1 && events.every((event) => event.type === "speech.audio.delta"));
  assert.deepEqual(Buffer.concat(events.map((event) => Buffer.from(event.audio, "base64"))), plain);
});

test("the same seed gives the same sound, another seed another sound", async () => {
  const [a, b, c] = await Promise.all([1, 1, 2].map(async (seed) => bytesOf(await speak({ response_format: "flac", seed }))));
  assert.deepEqual(a, b);
  assert.notDeepEqual(a, c);
});

test("speed changes the length, and instructions are accepted with a warning", async () => {
  const plain = readPcm(await bytesOf(await speak({ response_format: "pcm", seed: 3, speed: 1 })));
  for (const speed of [0.5, 1.5, 2]) {
    const sound = readPcm(await bytesOf(await speak({ response_format: "pcm", seed: 3, speed })));
    assert.ok(Math.abs(sound.length - plain.length / speed) < 24000 * 0.031 + 1, `speed ${speed}: ${sound.length} of ${plain.length}`);
  }
  const answer = await speak({ response_format: "pcm", seed: 3, instructions: "Whisper." });
  assert.match(answer.headers.get("x-shoal-warnings"), /^\["instructions: has no effect/);
  assert.deepEqual(readPcm(await bytesOf(answer)), plain);
});

async function rejected(promise, kind) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof errors[kind], `${error.constructor.name}, not ${kind}: ${error.message}`);
    assert.ok(error.error?.message && error.type && error.code, JSON.stringify(error.error));
    assert.match(error.requestID, /^[\w.-]+$/);
    return error;
  }
  assert.fail(`no ${kind}`);
}

for (const [name, body, param] of [
  ["a format that is none", { response_format: "mp4" }, "response_format"],
  ["no text", { input: "" }, "input"],
  ["a text that is a number", { input: 12 }, "input"],
  ["a speed beyond the range", { speed: 11 }, "speed"],
  ["a temperature beyond the range", { temperature: 3 }, "temperature"],
  ["a top_p beyond the range", { top_p: -0.1 }, "top_p"],
  ["a seed with a fraction", { seed: 1.5 }, "seed"],
  ["an unknown field", { inputs: "x" }, "inputs"],
  ["a stream format that is none", { stream_format: "rtp" }, "stream_format"],
]) {
  test(`BadRequestError for ${name}`, async () => {
    const error = await rejected(speak(body), "BadRequestError");
    assert.equal(error.param, param);
    assert.equal(error.type, "invalid_request_error");
  });
}

test("a text of the largest size is accepted, one character more is refused", async () => {
  const small = await Server.start({ flags: ["--max-text-length", "40"] });
  try {
    const say = (text) => clientOf(small).audio.speech.create(
      { model: "shoal", voice: "default", input: text, response_format: "pcm" });
    assert.ok((await bytesOf(await say("é".repeat(3) + "Hello there.".padEnd(37, " ")))).length > 0);
    const error = await say("x".repeat(41)).then(() => assert.fail("taken"), (thrown) => thrown);
    assert.ok([400, 413].includes(error.status), String(error));
    assert.equal(error.param, "input");
  } finally {
    await small.stop();
  }
});

test("a voice nobody has is a BadRequestError of `voice`, a model nobody has a NotFoundError", async () => {
  assert.equal((await rejected(speak({ voice: "nobody here" }), "BadRequestError")).param, "voice");
  const error = await rejected(speak({ model: "no-such-model" }), "NotFoundError");
  assert.deepEqual([error.param, error.code], ["model", "model_not_found"]);
  await rejected(client().models.retrieve("no-such-model"), "NotFoundError");
});

test("AuthenticationError with a wrong key", async () => {
  const guarded = await Server.start({ env: { SHOAL_API_KEY: "sesame" } });
  try {
    await rejected(clientOf(guarded, { apiKey: "wrong" }).models.list(), "AuthenticationError");
    assert.ok((await clientOf(guarded, { apiKey: "sesame" }).models.list()).data.length);
  } finally {
    await guarded.stop();
  }
});

test("RateLimitError with Retry-After when the queue is full, at once", async () => {
  const narrow = await Server.start({ flags: ["--max-concurrency", "1"] });
  try {
    const say = () => clientOf(narrow).audio.speech.create(
      { model: "shoal", voice: "default", input: long.repeat(5), response_format: "pcm" });
    const first = (await say()).body.getReader();
    await first.read();
    const error = await rejected(say(), "RateLimitError");
    assert.ok(Number(error.headers.get("retry-after")) >= 1);
    await first.cancel();
    await until("a free place", () => say().then((r) => r.body.cancel().then(() => true), () => false));
  } finally {
    await narrow.stop();
  }
});

test("an aborted stream ends its speech", async () => {
  const abort = new AbortController();
  const response = await speak({ input: long.repeat(20), response_format: "wav" }, { signal: abort.signal });
  await response.body.getReader().read();
  abort.abort();
  await until("no speech", async () => (await server().speaking()) === 0);
});
