// Who used how much: by API key, on every way to speech, and where it ends.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server } from "./harness.mjs";
import { readWav } from "./sound.mjs";

const WebSocket = createRequire(join(process.env.SHOAL_SERVER_CLIENTS, "package.json"))("ws");
const kText = "Good morning, everybody."; // 24 characters

let server;
let folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "shoal_usage_"));
  const file = join(folder, "keys");
  const lines = ["ann:one", "requests:two requests_per_minute=2", "minute:three characters_per_minute=60 characters_per_day=1000", "cut:four"];
  writeFileSync(file, lines.join("\n"), { mode: 0o600 });
  server = await Server.start({ flags: ["--api-key-file", file], env: { SHOAL_ADMIN_KEY: "root" } });
}, { timeout: 240_000 });
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, { timeout: 120_000 });

const as = (key) => ({ headers: { authorization: `Bearer ${key}` } });
const used = async (key) => (await server.http.get("/v1/usage", as(key))).json();
const speak = (key, input = kText) =>
  server.http.post("/v1/audio/speech", { model: "shoal", voice: "default", input, seed: 1, response_format: "wav", stream: false }, as(key));

test("every way to speech counts characters and seconds for the key that asks", async () => {
  assert.deepEqual(await used("one"), { key: "ann", requests: 0, characters: 0, audio_s: 0, limits: {} });
  const whole = await speak("one");
  const { rate, samples } = readWav(whole.body);
  const length = samples.length / rate;
  let told = await used("one");
  assert.deepEqual([told.requests, told.characters], [1, 24]);
  assert.ok(Math.abs(told.audio_s - length) < 1e-6, `${told.audio_s} s, ${length} s sent`);

  await server.http.post("/v1/tts", { text: kText, seed: 1, streaming: true, format: "wav" }, as("one"));
  const batch = (await server.http.post("/v1/tts/batch", { items: [{ text: kText, seed: 1 }, { text: kText, seed: 1 }] }, as("one"))).json();
  assert.ok(batch.success);
  told = await used("one");
  assert.deepEqual([told.requests, told.characters], [3, 96]);
  assert.ok(Math.abs(told.audio_s - 2 * length - 2 * batch.results[0].audio_seconds) < 0.01, `${told.audio_s} s, ${length} s each`);

  const socket = new WebSocket(`${server.url.replace("http", "ws")}/v1/audio/stream`, as("one"));
  await new Promise((done, failed) => socket.on("open", done).on("error", failed));
  const ended = new Promise((done) => socket.on("message", (data, binary) => !binary && JSON.parse(data).type === "done" && done()));
  socket.send(JSON.stringify({ type: "start", seed: 1, format: "pcm" }));
  socket.send(JSON.stringify({ type: "text", text: kText }));
  socket.send(JSON.stringify({ type: "end" }));
  await ended;
  socket.close();
  const live = await used("one");
  assert.deepEqual([live.requests, live.characters], [4, 120]);
  assert.ok(live.audio_s > told.audio_s + 0.5);
  assert.equal((await used("four")).requests, 0);
});

test("a request that is refused costs nothing", async () => {
  const before = await used("four");
  const wrong = await server.http.post("/v1/tts", { text: kText, reference_id: "nobody-here" }, as("four"));
  assert.equal(wrong.status, 404);
  const strange = await server.http.post("/v1/audio/speech", { model: "shoal", voice: "nobody-here", input: kText }, as("four"));
  assert.equal(strange.status, 400);
  assert.deepEqual((await used("four")).characters, before.characters);
});

test("requests a minute end with 429, and what is left is told", async () => {
  const first = await speak("two");
  assert.equal(first.status, 200);
  assert.equal(first.headers["x-ratelimit-limit-requests"], "2");
  assert.equal(first.headers["x-ratelimit-remaining-requests"], "1");
  await speak("two");
  const refused = await speak("two");
  assert.equal(refused.status, 429);
  assert.equal(refused.headers["x-ratelimit-remaining-requests"], "0");
  const wait_s = Number(refused.headers["retry-after"]);
  assert.ok(wait_s >= 1 && wait_s <= 60, `${wait_s} s`);
  assert.match(refused.json().error.message, /2 requests a minute/);
  assert.equal(refused.json().error.type, "rate_limit_error");
  assert.equal((await server.http.get("/v1/audio/voices", as("two"))).status, 200, "lists are free");
});

test("characters a minute end with 429; a text that is longer than a limit is to be split", async () => {
  const long = await speak("three", "Good morning. ".repeat(5));
  assert.equal(long.status, 413);
  assert.match(long.json().error.message, /60 characters a minute; split the text/);
  for (const left of [36, 12]) {
    const answer = await speak("three");
    assert.equal(answer.status, 200, answer.text().slice(0, 300));
    assert.equal(answer.headers["x-ratelimit-remaining-characters"], String(left));
  }
  const refused = await speak("three");
  assert.equal(refused.status, 429);
  assert.equal(refused.headers["x-ratelimit-remaining-characters-day"], "952");
  const { limits } = await used("three");
  assert.equal(limits.characters_per_minute.left, 12);
  assert.equal(limits.characters_per_day.left, 952);
});

test("administrators see all keys, and /metrics too", async () => {
  assert.equal((await server.http.get("/v1/admin/usage", as("one"))).status, 401);
  const { keys } = (await server.http.get("/v1/admin/usage", as("root"))).json();
  assert.deepEqual(keys.map(({ key }) => key).sort(), ["ann", "cut", "minute", "requests"]);
  const text = (await server.http.get("/metrics", as("one"))).text();
  assert.match(text, /shoal_key_requests_total\{key="requests"\} 2\n/);
  assert.match(text, /shoal_key_characters_total\{key="minute"\} 48\n/);
  assert.match(text, /shoal_key_audio_seconds_total\{key="ann"\} \d/);
});
