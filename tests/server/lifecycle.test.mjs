// Shutting down, reloading, deadlines and limits, while people are being served.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { environment, program, Server, slowness, until, withServer } from "./harness.mjs";
import { collect, Http, raw, sha256 } from "./http.mjs";
import { kokoroFlags, kokoroFolder } from "./kokoro_folder.mjs";

const sentences = ["Good morning.", "The train leaves at noon.", "Two and two make four.", "She sells sea shells."];
const long = "Every morning the fishermen went out before the sun was up, and came back at noon. ";
const requests = sentences.flatMap((text, seed) => [{ text, seed }, { text, seed, streaming: true }, { text: long, seed, format: "flac" }]);
const sums = [];  // of the sound of each, from a quiet server

before(async () => {
  const quiet = await Server.start();
  for (const request of requests) {
    const answer = await quiet.http.post("/v1/tts", request);
    assert.equal(answer.status, 200);
    sums.push(sha256(answer.body));
  }
  await quiet.stop();
}, { timeout: 300_000 });

// Speaks again and again until `stop.now`; returns what became of each request.
async function speakOn(server, index, stop) {
  const outcomes = [];
  for (let i = index; !stop.now; i = (i + 5) % requests.length) {
    try {
      const answer = await server.http.post("/v1/tts", requests[i]);
      outcomes.push({ status: answer.status, whole: answer.whole, right: sha256(answer.body) === sums[i], text: answer.text().slice(0, 200) });
    } catch (error) {
      outcomes.push({ status: 0, code: error.code });
    }
    if (outcomes.at(-1).status !== 200) await sleep(20);
  }
  return outcomes;
}

const patient = { flags: ["--grace-s", "240", "--request-timeout-s", "240"] };  // with slow machines
const isWhole = (outcome) => outcome.status === 200 && outcome.whole && outcome.right;

test("SIGTERM under load: accepted requests are answered completely, and the program exits with 0", withServer(patient, async (server) => {
  // All are inside before the signal: the first half is being answered, the others wait.
  const before_it = await server.submitted();
  const messages = await Promise.all(requests.map((body) => server.http.open("POST", "/v1/tts", { body: { ...body, streaming: body.format === undefined } })));
  const waiting = requests.map((body) => server.http.post("/v1/tts", body));
  await until("all to be inside", async () => (await server.submitted()) === before_it + 2 * requests.length);
  server.signal("SIGTERM");
  const answers = await Promise.all([...messages.map(collect), ...waiting]);
  for (const answer of answers) {
    assert.ok(answer.status === 200 && answer.whole, `${answer.status}, whole: ${answer.whole}`);
  }
}));

test("during shutdown it reports so and accepts no new requests", withServer(patient, async (server) => {
  const speaking = await server.http.open("POST", "/v1/tts", { body: { text: long.repeat(20), streaming: true } });
  server.signal("SIGTERM");
  // The first question may go by a kept connection that is being closed.
  await until("it to be draining", async () => (await server.http.get("/ready").catch(() => ({}))).status === 503);
  const ready = await server.http.get("/ready");
  assert.equal(ready.json().state, "draining");
  assert.equal((await server.http.get("/ping")).status, 503);
  assert.equal((await server.http.get("/health")).status, 200);
  const metrics = await server.metrics();
  assert.equal(metrics.value("shoal_ready"), 0);
  assert.ok(metrics.value("shoal_engine_requests") > 0, "the request inside is not told of");
  const refused = await server.http.post("/v1/tts", { text: "One more." });
  assert.equal(refused.status, 503, refused.text());
  assert.ok(Number(refused.headers["retry-after"]) > 0, "no Retry-After");
  const answer = await collect(speaking);
  assert.ok(answer.status === 200 && answer.whole, `${answer.status}, whole: ${answer.whole}`);
  assert.equal(await server.exited, 0, server.log);
}));

test("SIGTERM while clients come and go: no answer is cut off or wrong, and new clients are refused cleanly", withServer(patient, async (server) => {
  const stop = { now: false };
  const enough = (await server.submitted()) + 3 * 12;
  const clients = Array.from({ length: 12 }, (_, i) => speakOn(server, i % requests.length, stop));
  await until("each client to have had answers", async () => (await server.submitted()) >= enough, 120);
  server.signal("SIGTERM");
  await server.exited;
  stop.now = true;
  const outcomes = (await Promise.all(clients)).flat();
  assert.ok(outcomes.filter(isWhole).length >= 12, JSON.stringify(outcomes.slice(0, 5)));
  for (const outcome of outcomes) {
    const turnedAway = outcome.status === 503 || ["ECONNREFUSED", "ECONNRESET", "EPIPE"].includes(outcome.code);
    assert.ok(isWhole(outcome) || turnedAway, JSON.stringify(outcome));
  }
}));

test("after the grace time the remaining requests get an error in their own form, and the program exits with 0", withServer({ flags: ["--grace-s", "1", "--request-timeout-s", "300"] }, async (server) => {
  const text = long.repeat(400);
  const speech = { model: "shoal", voice: "default", input: text, response_format: "pcm" };
  const stream = await server.http.open("POST", "/v1/tts", { body: { text, streaming: true } });
  const events = await server.http.open("POST", "/v1/audio/speech", { body: { ...speech, stream_format: "sse" } });
  const before_them = await server.submitted();
  const fish = server.http.post("/v1/tts", { text });
  const kokoro = server.http.post("/dev/captioned_speech", { ...speech, return_timestamps: false, stream: false });
  await until("all to be inside", async () => (await server.submitted()) === before_them + 2);
  server.signal("SIGTERM");
  const [cut, told, ...refused] = await Promise.all([collect(stream), collect(events), fish, kokoro]);
  assert.equal(cut.whole, false, "a cut stream looks whole");
  assert.ok(told.whole, "a stream of events is cut off");
  const last = JSON.parse(told.text().trim().split("\n\n").at(-1).replace(/^data: /, ""));
  assert.equal(last.type, "error");
  assert.equal(last.error.code, "unavailable");
  for (const answer of refused) {
    assert.equal(answer.status, 503, answer.text().slice(0, 200));
    assert.ok(Number(answer.headers["retry-after"]) > 0, "no Retry-After");
  }
  assert.equal(refused[0].json().statusCode, 503);
  assert.equal(refused[1].json().detail.error, "unavailable");
}));

test("SIGTERM while the model is being loaded", withServer({ ready: false }, async () => {}));

// A model whose loading takes a minute: its sentence to warm up waits for company that does not come.
async function withSlowModel(use) {
  const folder = kokoroFolder(["af_one"]);
  try {
    await use(folder, ["--min-wait-ms", "60000", "--max-wait-ms", "60000"]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("slow loading does not delay SIGTERM", () => withSlowModel((folder, slow) =>
  withServer({ ready: false, flags: ["--model", join(folder, "m"), ...slow] }, async (server) => {
    await until("loading to begin", async () => (await server.http.get("/health")).json().state === "starting");
    server.signal("SIGTERM");
    assert.equal(await server.exited, 0, server.log);
    assert.match(server.log, /bye/);
    assert.doesNotMatch(server.log, /ready: /);
  })()));

test("SIGTERM while the second model is loading: the speech of the first one is finished", () => withSlowModel((folder, slow) =>
  withServer({ ready: false, flags: [...patient.flags, ...kokoroFlags(folder), ...slow] }, async (server) => {
    await until("the first model", () => server.log.includes("ready: "));
    const speaking = await server.http.open("POST", "/v1/tts", { body: { text: long.repeat(5), streaming: true } });
    server.signal("SIGTERM");
    const answer = await collect(speaking);
    assert.ok(answer.status === 200 && answer.whole, `${answer.status}, whole: ${answer.whole}`);
    assert.equal(await server.exited, 0, server.log);
    assert.doesNotMatch(server.log, /ready: kokoro/);
  })()));

test("SIGINT ends the server too", withServer({}, async (server) => {
  server.signal("SIGINT");
  assert.equal(await server.exited, 0, server.log);
}));

test("a second signal ends the server at once", async () => {
  const server = await Server.start({ flags: ["--grace-s", "600"] });
  const message = await server.http.open("POST", "/v1/tts", { body: { text: long.repeat(400), streaming: true } });
  message.on("error", () => {}).resume();
  server.signal("SIGTERM");
  await until("the first signal to be seen", () => server.log.includes("shutting down"));
  server.child.kill("SIGTERM");
  assert.equal(await server.exited, "SIGTERM");
});

// With a standard error that this process holds open and stops reading after the first lines.
test("a log that nobody reads does not delay SIGTERM, and its lost lines are counted", async () => {
  const dir = mkdtempSync(join(tmpdir(), "shoal_full_pipe_"));
  const pipe = join(dir, "log");
  execFileSync("mkfifo", [pipe]);
  const end = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  const log = openSync(pipe, constants.O_WRONLY);
  const child = spawn(program, ["serve", "--listen", "127.0.0.1:0", "--log-level", "debug", "--cache-dir", "none"],
    { cwd: dir, env: environment(), stdio: ["ignore", "ignore", log] });
  const exited = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const late = setTimeout(() => child.kill("SIGKILL"), 120_000 * slowness);
  try {
    let said = "";
    await until("the server to be ready", () => {
      const block = Buffer.alloc(4096);
      try {
        said += block.toString("utf8", 0, readSync(end, block));
      } catch (error) {
        assert.equal(error.code, "EAGAIN");
      }
      return said.includes("ready: ");
    }, 60);
    const http = new Http(Number(said.match(/listening on http:\/\/\S*:(\d+)/)[1]));
    const lost = async () => Number((await http.get("/metrics")).text().match(/^shoal_log_lines_lost_total (\d+)$/m)[1]);
    const path = `/health?${"x".repeat(1000)}`;
    // A pipe holds 64 KiB and the server 8,192 lines; the rest is lost.
    await until("lines to be lost", async () => {
      for (let i = 0; i < 20; ++i) await Promise.all(Array.from({ length: 50 }, () => http.get(path)));
      return await lost() > 0;
    }, 60);
    http.close();
    child.kill("SIGTERM");
    assert.equal(await exited, 0);
  } finally {
    clearTimeout(late);
    child.kill("SIGKILL");
    await exited;
    closeSync(end);
    closeSync(log);
    rmSync(dir, { recursive: true, force: true });
  }
});

test("a voice over the limit of a file's size is an error, and the server goes on", async () => {
  // The limit is of the shell, and of what it becomes.
  const server = await Server.start({ wrap: ["/bin/sh", "-c", "ulimit -f 8; exec \"$@\"", "sh"] });
  const { body: audio } = await server.http.post("/v1/tts", { text: long, seed: 3 });
  assert.ok(audio.length > 10_000);
  const added = await server.http.post("/v1/references/add", { id: "ann", text: long, audio: audio.toString("base64") });
  assert.ok(added.status >= 400, added.text());
  await server.assertSpeaks();
  await server.stop();
});

test("SIGHUP reloads each model, and a configuration file holds from then on", async () => {
  const dir = mkdtempSync(join(tmpdir(), "shoal_hangup_"));
  const file = join(dir, "shoal.toml");
  const write = (lines) => writeFileSync(file, lines.join("\n"));
  const precision = async (server) => (await server.http.get("/health")).json().models[0].precision;
  write(["precision = \"float32\"", "device = \"cpu\""]);
  try {
    await withServer({ flags: ["--config", file] }, async (server) => {
      assert.equal(await precision(server), "float32");
      const speaking = await server.http.open("POST", "/v1/tts", { body: { text: long.repeat(5), streaming: true } });
      write(["precision = \"bfloat16\"", "device = \"cpu\"", "max_connections = 77", "max_queue = 9"]);
      server.child.kill("SIGHUP");
      await until("the reload", () => server.log.includes("reloaded: "));
      assert.equal(await precision(server), "bfloat16");
      assert.match(server.log, /max_connections has changed; that needs a restart/);
      const answer = await collect(speaking);
      assert.ok(answer.status === 200 && answer.whole, `${answer.status}, whole: ${answer.whole}`);
      write(["precision = \"float99\""]);
      server.child.kill("SIGHUP");
      await until("the refusal", () => server.log.includes("float99"));
      assert.equal(await precision(server), "bfloat16");
      assert.equal((await server.http.post("/v1/tts", { text: "Good morning." })).status, 200);
    })();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test("SIGHUP without a file loads the same models again, under load", withServer(patient, async (server) => {
  const stop = { now: false };
  const clients = Array.from({ length: 4 }, (_, i) => speakOn(server, i % requests.length, stop));
  await sleep(400);
  server.child.kill("SIGHUP");
  await until("the reload", () => server.log.includes("reloaded: "), 60);
  stop.now = true;
  const outcomes = (await Promise.all(clients)).flat();
  for (const outcome of outcomes) assert.ok(isWhole(outcome), JSON.stringify(outcome));
  await server.assertSpeaks();
}));

test("a reload under load drops nothing and changes no sound", withServer({ env: { SHOAL_ADMIN_KEY: "open" }, flags: ["--request-timeout-s", "1200", "--max-timeout-s", "1200"] }, async (server) => {
  const stop = { now: false };
  const clients = Array.from({ length: 8 }, (_, i) => speakOn(server, i % requests.length, stop));
  for (let i = 0; i < 3; ++i) {
    await sleep(400);
    const reload = await server.http.post("/v1/admin/reload", undefined, { headers: { authorization: "Bearer open" } });
    assert.equal(reload.status, 200, reload.text());
  }
  await sleep(300);
  stop.now = true;
  const outcomes = (await Promise.all(clients)).flat();
  for (const outcome of outcomes) assert.ok(isWhole(outcome), JSON.stringify(outcome));
  assert.ok(outcomes.length >= clients.length);
  await server.assertSpeaks();
}));

test("a deadline that passes is 504 in the route's own form; longer than the server allows is refused", withServer({ flags: ["--max-timeout-s", "5"] }, async (server) => {
  const text = long.repeat(300);
  const fish = await server.http.post("/v1/tts", { text, timeout: 0.2 });
  assert.equal(fish.status, 504, fish.text().slice(0, 200));
  assert.equal(fish.json().statusCode, 504);
  const openai = await server.http.post("/v1/audio/speech", { model: "shoal", voice: "default", input: text, timeout: 0.001 });
  assert.equal(openai.status, 504, openai.text().slice(0, 200));
  assert.ok(openai.json().error.message);
  for (const timeout of [6, -1, 0.0000001, 1e308]) {
    const refused = await server.http.post("/v1/tts", { text: "Hello.", timeout });
    assert.ok(refused.status >= 400 && refused.status < 500 || refused.status === 504, `${timeout}: ${refused.status}`);
  }
  // A stream that has begun is cut off, visibly.
  const stream = await server.http.post("/v1/tts", { text, timeout: 1, streaming: true });
  assert.ok(stream.status === 504 || !stream.whole, `${stream.status}, whole: ${stream.whole}`);
  await server.assertSpeaks();
}));

test("a request over the limit gets 429 with Retry-After at once, on every route that keeps a model busy", withServer({ flags: ["--max-concurrency", "2"] }, async (server) => {
  const held = await Promise.all([1, 2].map(() => server.http.open("POST", "/v1/tts", { body: { text: long.repeat(100), streaming: true } })));
  for (const [path, body] of [
    ["/v1/tts", { text: "Hello." }], ["/v1/audio/speech", { model: "shoal", voice: "default", input: "Hello." }],
    ["/v1/tts/batch", { items: [{ text: "Hello." }] }], ["/v1/vqgan/encode", { audios: [] }],
    ["/v1/references/add", { id: "a", text: "b", audio: "" }], ["/v1/audio/voices/combine", { voices: "a+b" }], ["/test/gpu"],
  ]) {
    const answer = await server.http.ask(body ? "POST" : "GET", path, { body });
    assert.equal(answer.status, 429, `${path}: ${answer.text().slice(0, 200)}`);
    assert.ok(Number(answer.headers["retry-after"]) >= 1, path);
  }
  assert.equal((await server.http.get("/health")).status, 200);
  held.forEach((message) => message.destroy());
  await server.assertSpeaks();
}));

test("a key's own limit is its own", withServer({ flags: ["--max-concurrency-per-key", "1"], env: { SHOAL_API_KEY: "ann" } }, async (server) => {
  const headers = { authorization: "Bearer ann" };
  const held = await server.http.open("POST", "/v1/tts", { body: { text: long.repeat(100), streaming: true }, headers });
  assert.equal((await server.http.post("/v1/tts", { text: "Hello." }, { headers })).status, 429);
  held.destroy();
  await until("a free place", async () => (await server.http.post("/v1/tts", { text: "Hello." }, { headers })).status === 200);
}));

test("connections over the limit are refused, and freed places are used again", withServer({ flags: ["--max-connections", "8"] }, async (server) => {
  server.http.close();
  const get = "GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n";
  const many = await Promise.all(Array.from({ length: 20 }, () => raw(server.port, [get], { patience_ms: 2000 })));
  assert.equal(many.filter((answer) => answer.status === 200).length, 8);
  assert.ok(many.every((answer) => [0, 200, 503].includes(answer.status)));
  await server.assertSpeaks();
}));
