// --model-ttl-s: models of several that nobody uses leave memory, and are back for their next request.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WebSocket } from "./clients.mjs";
import { Server, until, withServer } from "./harness.mjs";
import { sha256 } from "./http.mjs";

const Socket = await WebSocket();
const work = mkdtempSync(join(tmpdir(), "shoal_ttl_"));
const dir = join(work, "again");
const say = (model, seed = 1) => server.http.post("/v1/tts", { text: "Good morning.", seed, max_new_tokens: 12, model });
let server, spoken;

async function entry(id) {
  return (await server.http.get(`/v1/models/${id}`)).json();
}
const unloaded = (...ids) => until(`${ids} to be unloaded`, async () => {
  const states = await Promise.all(ids.map(async (id) => (await entry(id)).state));
  return states.every((state) => state === "unloaded");
}, 120);

before(async () => {
  cpSync(fileURLToPath(new URL("../../voice", import.meta.url)), dir, { recursive: true });
  server = await Server.start({ flags: ["--models", `again=${dir}`, "--model-ttl-s", "1"] });
  const answer = await say("again");
  assert.equal(answer.status, 200, answer.text());
  spoken = sha256(answer.body);
}, { timeout: 240_000 });
after(async () => {
  await server?.stop();
  rmSync(work, { recursive: true, force: true });
});

test("health checks see a server that is ready, and wake nobody", async () => {
  await unloaded("shoal", "again");
  for (let i = 0; i < 20; ++i) {
    for (const path of ["/ready", "/ping", "/health", "/metrics", "/v1/stats", "/v1/models"])
      assert.equal((await server.http.get(path)).status, 200, path);
    await sleep(20);
  }
  assert.equal((await server.metrics()).value("shoal_ready", { model: "again" }), 1);
  const health = (await server.http.get("/health")).json();
  assert.equal(health.model_loaded, false);
  for (const { state, model } of health.models) assert.ok(state === "unloaded" && model, "its name is known");
  assert.deepEqual([(await entry("shoal")).state, (await entry("again")).state], ["unloaded", "unloaded"]);
  assert.equal((await entry("again")).family, (await entry("shoal")).family);
});

test("the next request waits until its model is back, alone, and says the same as before", async () => {
  let loading = [];
  // On a busy machine the load may be over before anybody sees it.
  for (let round = 0; round < 5 && loading.length === 0; ++round) {
    await unloaded("shoal", "again");
    const seen = [];
    let done = false;
    const watch = (async () => {
      while (!done) seen.push(await entry("again"));
    })();
    const answers = await Promise.all([say("again"), say("again"), say("again")]);
    done = true;
    await watch;
    for (const answer of answers) assert.deepEqual([answer.status, sha256(answer.body)], [200, spoken]);
    assert.equal((await entry("shoal")).state, "unloaded");
    loading = seen.filter(({ state }) => state === "loading");
  }
  assert.ok(loading.length > 0, "no progress was shown");
  for (const { loading_s, last_load_s } of loading) assert.ok(loading_s >= 0 && last_load_s > 0);
});

test("every kind of request wakes its model", async () => {
  for (const ask of [
    () => server.http.post("/v1/audio/speech", { model: "again", voice: "default", input: "Good morning.", seed: 1, max_new_tokens: 12 }),
    () => server.http.post("/v1/tts/batch", { model: "again", items: [{ text: "Good morning.", seed: 1 }], max_new_tokens: 12 }),
    () => server.http.get("/v1/audio/voices?model=again"),
    () => server.http.get("/v1/references/list?model=again&format=json"),
    () => server.http.get("/test/gpu?model=again"),
  ]) {
    await unloaded("again");
    const answer = await ask();
    assert.equal(answer.status, 200, `${ask}: ${answer.text().slice(0, 300)}`);
  }
});

test("a conversation keeps its model while it waits for text, and wakes it for the next utterance", async () => {
  const socket = new Socket(`ws://127.0.0.1:${server.port}/v1/audio/stream`);
  const events = [];
  socket.on("message", (data, binary) => events.push(binary ? { type: "sound" } : JSON.parse(data)));
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  const tell = (message) => socket.send(JSON.stringify(message));
  for (const id of ["first", "second"]) {
    tell({ type: "start", id, model: "again", seed: 2, max_new_tokens: 12 });
    await until("started", () => events.find((event) => event.type === "started" && event.id === id), 120);
    await sleep(3000);
    assert.equal((await entry("again")).state, "ready", "unloaded under an utterance");
    tell({ type: "text", text: "Good morning." });
    tell({ type: "end" });
    const end = await until("done", () => events.find((event) => event.type === "done" && event.id === id), 120);
    assert.equal(end.outcome, "completed");
    await unloaded("again");
  }
  socket.close();
});

test("requests that come as the time runs out are all answered", async () => {
  const asked = [];
  for (let i = 0; i < 12; ++i) {
    asked.push(say("again"));
    await sleep(1000 + ((i * 37) % 160) - 80);
  }
  for (const answer of await Promise.all(asked)) assert.deepEqual([answer.status, sha256(answer.body)], [200, spoken]);
});

test("a model that cannot be loaded again is told, and is back when it can", async () => {
  await unloaded("again");
  renameSync(dir, `${dir}_away`);
  const answer = await say("again");
  assert.equal(answer.status, 503, answer.text());
  assert.match(answer.text(), /unloaded/);
  await until("the reason in the log", () => /loading again again: /.test(server.log));
  renameSync(`${dir}_away`, dir);
  assert.equal(sha256((await say("again")).body), spoken);
});

test("one model alone stays", withServer({ flags: ["--model-ttl-s", "1"] }, async (alone) => {
  await sleep(3000);
  assert.equal((await alone.http.get("/v1/models/shoal")).json().state, "ready");
}));
