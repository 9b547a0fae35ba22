// A reader who plays as it receives: its own time is no time of the request's. (The other kind, who takes nothing at
// all, is in hostile.test.mjs.)
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sharedServer, slowness, until } from "./harness.mjs";
import { collect } from "./http.mjs";

// Prefetch: so that the engine waits for the reader, and not only the socket. One thread: quick beside other work.
const deadline_s = 8 * slowness;
const server = sharedServer({ before, after }, { flags: ["--threads", "1", "--prefetch-s", "1", "--write-timeout-s", "600"] });

test("a reader slower than the deadline gets the whole sound", async () => {
  const input = "Every morning the fishermen went out before the sun was up, and came back at noon. ".repeat(4);
  const body = { model: "tts-1", voice: "default", input, response_format: "pcm", sample_rate: 48000, timeout: deadline_s, seed: 4 };
  const message = await server().http.open("POST", "/v1/audio/speech", { body });
  assert.equal(message.statusCode, 200);
  message.pause();
  await until("the engine to wait for the reader", async () =>
    (await server().metrics()).value("shoal_engine_requests", { stage: "paused" }) === 1, 30);
  await sleep((deadline_s + 1) * 1000);
  const rest = collect(message);
  message.resume();
  const answer = await rest;
  assert.ok(answer.whole, server().log.slice(-1000));
  assert.ok(answer.body.length > 9 * 2 * 48000, `${answer.body.length} bytes`);
});
