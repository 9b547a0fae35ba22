import assert from "node:assert/strict";
import { test } from "node:test";
import { readError } from "../src/errors.ts";
import { bytes, clock, duration, milliseconds } from "../src/format.ts";
import { readModels, samples } from "../src/models.ts";
import { Peaks } from "../src/peaks.ts";
import { readStatistics } from "../src/server_statistics.ts";
import { asCurl, readSeed } from "../src/speech_request.ts";

test("errors of every family are read", () => {
  const openai = readError(400, '{"error":{"message":"top_p: too large","type":"invalid_request_error","param":"top_p","code":null}}', "r1");
  assert.deepEqual([openai.message, openai.field, openai.status, openai.requestId], ["top_p: too large", "top_p", 400, "r1"]);
  assert.equal(readError(409, '{"statusCode":409,"message":"voice exists","error":"Conflict"}').message, "voice exists");
  const plain = readError(503, '{"error":{"code":"unavailable","message":"loading","request_id":"r2"}}');
  assert.deepEqual([plain.message, plain.requestId], ["loading", "r2"]);
});

test("what is no error of ours is still said", () => {
  assert.equal(readError(502, "<html>Bad Gateway</html>").message, "the server answered with status 502");
  assert.equal(readError(502, "upstream is away").message, "upstream is away");
  for (const odd of ["", "null", "[]", "3", '{"error":null}', '{"message":5}']) {
    assert.ok(readError(500, odd).message.length > 0);
  }
});

test("peaks keep the loudest sample, wherever pieces end", () => {
  const sound = Int16Array.from({ length: 1000 }, (_, i) => (i === 333 ? -32768 : i % 100));
  const whole = new Peaks(1000);
  whole.append(sound);
  const pieces = new Peaks(1000);
  for (let at = 0; at < sound.length; at += 7) pieces.append(sound.subarray(at, at + 7));
  assert.equal(whole.length, 100);
  assert.deepEqual(pieces.bars(100, 100), whole.bars(100, 100));
  assert.equal(whole.bars(100, 100)[33], 1);
  assert.equal(whole.bars(10, 100)[3], 1);
  assert.deepEqual([...whole.bars(4, 400)].map((v) => v > 0), [true, false, false, false]);
  assert.equal(whole.bars(300, 100)[99], 1); // fewer peaks than bars
});

test("numbers are written for people", () => {
  assert.deepEqual([3.4, 999, 1234, 12_345].map(milliseconds), ["3 ms", "999 ms", "1.23 s", "12.3 s"]);
  assert.deepEqual([0, 4.25, 59.99, 60, 605.1].map(clock), ["0:00.0", "0:04.2", "0:59.9", "1:00.0", "10:05.1"]);
  assert.deepEqual([5, 61, 7300, 90_000].map(duration), ["5 s", "1 min", "2 h 1 min", "1 d 1 h"]);
  assert.deepEqual([0, 1023, 1536, 300 * 1024 ** 2].map(bytes), ["0 B", "1023 B", "1.5 KiB", "300 MiB"]);
});

test("a seed is a whole number that JSON can hold", () => {
  assert.deepEqual(["0", " 42 ", "9007199254740991"].map(readSeed), [0, 42, 9007199254740991]);
  for (const wrong of ["", "-1", "1.5", "1e3", "9007199254740993", "99999999999999999", "x"]) {
    assert.equal(readSeed(wrong), undefined, wrong);
  }
});

test("statistics are read where they are, and left out where they are not", () => {
  const read = readStatistics({
    state: "ready",
    model: null,
    queue: { preparing: 1, waiting: 2, running: 3 },
    first_audio_s: { mean: null, p50: null },
    kv: { hit_rate: 0.5 },
    device_memory: null,
  });
  assert.deepEqual(read, { state: "ready", running: 3, waiting: 3, cacheHitRate: 0.5 });
  assert.deepEqual(readStatistics(null), { state: "unknown" });
});

test("the command survives quotes and never holds the key", () => {
  const command = asCurl("http://h:1", { model: "m", input: "it's", voice: "v", response_format: "mp3", seed: 1 }, true);
  assert.match(command, /it'\\''s/);
  assert.match(command, /\$SHOAL_API_KEY/);
  assert.match(command, /-o speech\.mp3$/);
});

test("models are read with their families, and judged by them", () => {
  const read = readModels({
    data: [
      { id: "shoal", family: "s1" },
      { id: "kokoro", family: "kokoro" },
      { id: "loading" },
      { id: "tts-1", family: "s1", alias_of: "shoal" }, // no model twice
    ],
  });
  assert.deepEqual(read.map(({ id }) => id), ["shoal", "kokoro", "loading"]);
  assert.deepEqual(read.map(samples), [true, false, true]);
  for (const odd of [null, {}, { data: [] }]) assert.deepEqual(readModels(odd), []);
});
