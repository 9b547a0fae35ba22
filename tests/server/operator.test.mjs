// What an operator sees: live checks, metrics, statistics, logs, keys, cross-origin rules.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, environment, program, sharedServer, until } from "./harness.mjs";
import { Http } from "./http.mjs";
import { magic } from "./sound.mjs";

const server = sharedServer({ before, after });
const http = () => server().http;
const say = { text: "Good morning.", seed: 1 };

test("/health, /ready and /ping answer without a key", async () => {
  const health = (await http().get("/health")).json();
  assert.ok(["ok", "healthy"].includes(health.status), JSON.stringify(health));
  assert.equal(health.model_loaded, true);
  assert.equal(health.device, "cpu");
  assert.ok(health.uptime_s >= 0 && "queue" in health && "vram" in health);
  assert.equal((await http().get("/ready")).status, 200);
  assert.equal((await http().get("/ping")).status, 200);
  const asked = spawnSync(program, ["ready", `127.0.0.1:${server().port}`], { env: environment() });
  assert.equal(asked.status, 0, String(asked.stderr));
});

test("/health answers while the model is loading, /ready gives 503", async () => {
  const young = await Server.start({ ready: false });
  try {
    const ready = await young.http.get("/ready");
    assert.ok([200, 503].includes(ready.status));
    assert.equal((await young.http.get("/health")).status, 200);
    await until("/ready", async () => (await young.http.get("/ready")).status === 200, 60);
  } finally {
    await young.stop();
  }
});

test("a full server still answers operators", async () => {
  const full = await Server.start({ flags: ["--max-connections", "4"] });
  const taken = [];
  try {
    full.http.close();
    await until("no connection", async () => (await full.http.get("/v1/stats", { agent: false })).json().http.connections <= 1);
    for (let i = 0; i < 4; ++i) taken.push(await new Promise((resolve) => {
      const socket = net.connect(full.port, "127.0.0.1", () => resolve(socket));
      socket.on("error", () => {});
    }));
    await until("the server to be full", async () => (await full.http.get("/v1/models", { agent: false })).status === 503);
    for (const path of ["/health", "/ready", "/ping", "/v1/health", "/metrics"]) {
      const answer = await full.http.get(path, { agent: false });
      assert.equal(answer.status, 200, `${path}: ${answer.text().slice(0, 200)}`);
      assert.equal(answer.headers.connection, "close");
    }
    assert.equal((await full.http.post("/v1/tts", say, { agent: false })).status, 503);
  } finally {
    taken.forEach((socket) => socket.destroy());
    await full.stop();
  }
});

test("--operator-listen answers only operators, even when the server is full", async () => {
  const busy = await Server.start({
    flags: ["--max-connections", "1", "--operator-listen", "127.0.0.1:0"], env: { SHOAL_API_KEY: "client", SHOAL_ADMIN_KEY: "root" }, ready: false });
  const port = Number(busy.log.match(/operators are answered at http:\/\/127\.0\.0\.1:(\d+)/)[1]);
  const operators = new Http(port);
  const taken = net.connect(busy.port, "127.0.0.1").on("error", () => {});
  try {
    await until("/ready", async () => (await operators.get("/ready")).status === 200, 120);
    for (const path of ["/health", "/ping"]) assert.equal((await operators.get(path)).status, 200, path);
    for (const path of ["/metrics", "/v1/stats", "/v1/workers"]) {
      assert.equal((await operators.get(path)).status, 401, path);
      assert.equal((await operators.get(path, { headers: { authorization: "Bearer client" } })).status, 200, path);
    }
    for (const path of ["/", "/docs", "/openapi.json", "/v1/models", "/v1/audio/voices"])
      assert.equal((await operators.get(path, { headers: { authorization: "Bearer client" } })).status, 404, path);
    assert.equal((await operators.post("/v1/tts", say)).status, 404);
    assert.equal((await operators.post("/v1/admin/reload", {}, { headers: { authorization: "Bearer client" } })).status, 401);
    assert.equal((await operators.post("/v1/admin/reload", {}, { headers: { authorization: "Bearer root" } })).status, 200);
  } finally {
    taken.destroy();
    operators.close();
    await busy.stop();
  }
});

test("/invocations speaks, as SageMaker asks, in each route's form and in the format that Accept names", async () => {
  const batch = { items: [{ text: "Good morning.", seed: 1 }] };
  const speech = { model: "tts-1", voice: "default", input: "Good morning.", seed: 1 };
  for (const [body, accept, format] of [
    [say, undefined, "wav"], [say, "audio/flac", "flac"], [speech, undefined, "mp3"], [speech, "audio/wav", "wav"],
    [speech, "audio/mpeg", "mp3"], [{ ...speech, response_format: "flac" }, "*/*", "flac"],
  ]) {
    const answer = await http().post("/invocations", body, { headers: accept ? { accept } : {} });
    assert.equal(answer.status, 200, `${JSON.stringify(body)}, ${accept}: ${answer.text().slice(0, 300)}`);
    assert.ok(magic[format](answer.body), `${JSON.stringify(body)}, ${accept}: ${answer.type}`);
  }
  const answered = await http().post("/invocations", batch);
  assert.equal(answered.json().results[0].success, true);
  assert.equal((await http().post("/invocations", { prompt: "x" })).status, 400);
});

test("metrics are valid for Prometheus and change", async () => {
  const before_it = await server().metrics();
  assert.equal((await http().post("/v1/tts", say)).status, 200);
  assert.equal((await http().post("/v1/tts", { text: 1 })).status, 422);
  const after_it = await server().metrics();
  const rise = (name, labels) => after_it.value(name, labels) - before_it.value(name, labels);
  assert.equal(rise("shoal_engine_requests_total", { outcome: "completed" }), 1);
  assert.equal(rise("shoal_http_requests_total", { route: "/v1/tts", outcome: "ok" }), 1);
  assert.equal(rise("shoal_http_requests_total", { route: "/v1/tts", outcome: "client_error" }), 1);
  assert.equal(rise("shoal_first_audio_seconds_count"), 1);
  assert.ok(rise("shoal_frames_total") > 0 && rise("shoal_audio_seconds_total") > 0);
  assert.equal(rise("shoal_errors_total", { code: "invalid_argument" }), 1);
  assert.equal(after_it.value("shoal_ready"), 1);
  const answer = await http().get("/metrics");
  assert.match(answer.headers["content-type"], /^text\/plain; version=0\.0\.4/);
});

test("promtool accepts the metrics", async (t) => {
  if (spawnSync("promtool", ["--version"]).error) return t.skip("promtool is not installed");
  const text = (await http().get("/metrics")).body;
  const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
});

test("unknown paths and methods add no series", async () => {
  for (let i = 0; i < 40; ++i) await http().get(`/v1/none/${i}`);
  const { samples } = (await server().metrics()).families.get("shoal_http_requests_total");
  const routes = new Set(samples.map((sample) => sample.labels.route));
  assert.ok([...routes].every((route) => !route.startsWith("/v1/none")), [...routes].join());
});

test("statistics as JSON", async () => {
  const stats = await server().stats();
  assert.ok(Object.keys(stats).length > 3, JSON.stringify(stats));
  const text = JSON.stringify(stats);
  for (const word of ["queue", "batch", "cache", "device"]) assert.ok(text.includes(word), `nothing about ${word}: ${text}`);
});

test("a folder in 8 bits is served, says so, and sounds like the model with --weights int8", async () => {
  const dir = mkdtempSync(join(tmpdir(), "shoal_quantised_"));
  const small = join(dir, "small");
  execFileSync(program, ["quantize", "-o", small], { env: environment(), stdio: "pipe" });
  const sounds = [];
  for (const flags of [["--model", small], ["--weights", "int8"]]) {
    const narrow = await Server.start({ flags: [...flags, "--kv-precision", "int8", "--precision", "bfloat16"] });
    try {
      const health = (await narrow.http.get("/health")).json();
      for (const of of [health, health.models[0], (await narrow.http.get("/v1/stats")).json()])
        assert.deepEqual([of.precision, of.weights, of.kv_precision, of.codec_weights], ["bfloat16", "int8", "int8", "bfloat16"]);
      assert.match((await narrow.http.get("/metrics")).text(), /shoal_model_info\{[^}]*weights="int8"/);
      assert.match(narrow.log, /ready: .*, bfloat16, int8 weights, int8 keys and values on /);
      sounds.push((await narrow.http.post("/v1/tts", say)).body);
    } finally {
      await narrow.stop();
    }
  }
  rmSync(dir, { recursive: true });
  assert.ok(sounds[0].equals(sounds[1]));
});

test("a request's id: the client's own or a new one, in the header and in errors", async () => {
  const own = await http().post("/v1/tts", { text: 1 }, { headers: { "x-request-id": "mine-17" } });
  assert.equal(own.headers["x-request-id"], "mine-17");
  assert.ok(own.text().includes("mine-17"));
  const ids = new Set();
  for (const id of [undefined, "", "bad id\t", "x".repeat(300), "<script>"]) {
    const answer = await http().get("/health", { headers: id === undefined ? {} : { "x-request-id": id } });
    assert.match(answer.headers["x-request-id"], /^[\w.-]{1,64}$/);
    assert.notEqual(answer.headers["x-request-id"], id);
    ids.add(answer.headers["x-request-id"]);
  }
  assert.equal(ids.size, 5);
  await until("the id in the log", () => server().log.includes("mine-17"));
});

test("unknown paths get 404 and wrong methods 405, both with an id", async () => {
  for (const [method, path, status] of [
    ["GET", "/v1/nothing", 404], ["POST", "/nowhere", 404], ["GET", "/v1/tts", 405], ["DELETE", "/health", 405],
    ["GET", "/../etc/passwd", 404], ["GET", "/%2e%2e/%2e%2e/etc/passwd", 404], ["GET", "/v1/models/..%2f..%2fsecret", 404],
    ["PROPFIND", "/health", 405],
  ]) {
    const answer = await http().ask(method, path);
    assert.equal(answer.status, status, `${method} ${path}: ${answer.status}`);
    assert.ok(answer.headers["x-request-id"]);
    if (status === 405) assert.ok(answer.headers.allow);
  }
});

test("HEAD has the header of GET and no body", async () => {
  const head = await http().ask("HEAD", "/health");
  assert.equal(head.status, 200);
  assert.equal(head.body.length, 0);
});

test("admin routes do not exist without their key", async () => {
  assert.equal((await http().post("/v1/admin/reload")).status, 404);
  const guarded = await Server.start({ env: { SHOAL_ADMIN_KEY: "open" } });
  try {
    const reload = (authorization) =>
      guarded.http.post("/v1/admin/reload", undefined, { headers: authorization ? { authorization } : {} });
    for (const wrong of [undefined, "Bearer wrong", "Bearer ", "open", "Basic open"]) {
      assert.equal((await reload(wrong)).status, 401, wrong);
    }
    assert.equal((await reload("Bearer open")).status, 200);
    await guarded.assertSpeaks();
  } finally {
    await guarded.stop();
  }
});

test("with keys, every route except health checks requires one", async () => {
  const keys = join(server().dir, "keys");
  writeFileSync(keys, "# ours\nann:first-key\nsecond-key\n", { mode: 0o600 });
  const guarded = await Server.start({ flags: ["--api-key-file", keys], env: { SHOAL_API_KEY: "third" } });
  try {
    const { paths } = (await guarded.http.get("/openapi.json", { headers: { authorization: "Bearer third" } })).json();
    const open = [];
    for (const [path, methods] of Object.entries(paths)) {
      for (const method of Object.keys(methods)) {
        const answer = await guarded.http.ask(method.toUpperCase(), path.replace(/\{\w+\}/, "x"), { body: method === "get" ? undefined : {} });
        if (answer.status !== 401) open.push(path);
        else assert.match(answer.headers["www-authenticate"], /Bearer/);
      }
    }
    for (const path of open) assert.match(path, /^\/($|health$|ready$|ping$|docs$|openapi\.json$|v2\/health\/|assets|favicon)/);
    for (const key of ["first-key", "second-key", "third"]) {
      const answer = await guarded.http.post("/v1/tts", say, { headers: { authorization: `Bearer ${key}` } });
      assert.equal(answer.status, 200, `${key}: ${answer.text().slice(0, 200)}`);
    }
    for (const wrong of ["first", "first-key2", "ann:first-key", "ann", "# ours", "", "third "]) {
      const answer = await guarded.http.post("/v1/tts", say, { headers: { authorization: `Bearer ${wrong}` } });
      if (wrong !== "third ") assert.equal(answer.status, 401, wrong);
    }
    for (const key of ["first-key", "second-key", "third"]) assert.ok(!guarded.log.includes(key), `${key} is in the log`);
  } finally {
    await guarded.stop();
  }
});

test("cross-origin headers are sent only for configured origins", async () => {
  const ask = (which, origin, method = "OPTIONS") => which.http.ask(method, "/v1/tts", {
    headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": "content-type" },
    body: method === "POST" ? say : undefined,
  });
  for (const method of ["OPTIONS", "POST"]) {
    assert.equal((await ask(server(), "https://page.example", method)).headers["access-control-allow-origin"], undefined);
  }
  const shared = await Server.start({ flags: ["--cors-origins", "https://page.example,https://other.example"] });
  try {
    const welcome = await ask(shared, "https://page.example");
    assert.equal(welcome.status, 204);
    assert.equal(welcome.headers["access-control-allow-origin"], "https://page.example");
    assert.match(welcome.headers["access-control-allow-headers"], /content-type/i);
    assert.match(welcome.headers.vary ?? "", /origin/i);
    assert.equal((await ask(shared, "https://page.example", "POST")).status, 200);
    const stranger = await ask(shared, "https://page.example.evil");
    assert.equal(stranger.headers["access-control-allow-origin"], undefined);
  } finally {
    await shared.stop();
  }
});

test("logs as JSON: a line for each request", async () => {
  const talker = await Server.start({ flags: ["--log-format", "json"] });
  try {
    await talker.http.post("/v1/tts", say, { headers: { "x-request-id": "line-1" } });
    const line = await until("the line", () => talker.log.split("\n").find((each) => each.includes("line-1")));
    const entry = JSON.parse(line);
    const all = JSON.stringify(entry);
    for (const word of ["/v1/tts", "200", "line-1"]) assert.ok(all.includes(word), all);
    talker.log.trim().split("\n").filter((each) => !each.includes("listening on")).forEach((each) => JSON.parse(each));
  } finally {
    await talker.stop();
  }
});

test("--trace records the steps of the engine", async () => {
  const path = join(tmpdir(), `shoal_trace_${process.pid}.json`);
  const traced = await Server.start({ flags: ["--trace", path] });
  try {
    await traced.assertSpeaks();
  } finally {
    await traced.stop();
  }
  assert.ok(existsSync(path), "no trace");
  const trace = JSON.parse(readFileSync(path, "utf8"));
  const events = trace.traceEvents ?? trace;
  assert.ok(events.some((event) => event.ph === "X" && event.dur >= 0), "no step");
  execFileSync("rm", [path]);
});

test("a wrong flag is refused before anything is loaded", () => {
  for (const flags of [["--listen", "nonsense"], ["--max-body-mb", "0"], ["--max-connections", "-1"], ["--tls-key", "x"],
    ["--grace-s", "1e9"], ["--log-format", "xml"], ["--api-key-file", "/nonexistent/keys"], ["--no-such-flag"]]) {
    const run = spawnSync(program, ["serve", "--listen", "127.0.0.1:0", ...flags],
      { encoding: "utf8", timeout: 60_000, env: environment({ SHOAL_CACHE_DIR: "none" }) });
    assert.equal(run.status, 2, `${flags}: ${run.status} ${run.stderr}`);
    assert.ok(run.stderr.trim().length > 10);
  }
});

test("a port in use is named", () => {
  const run = spawnSync(program, ["serve", "--listen", `127.0.0.1:${server().port}`],
    { encoding: "utf8", timeout: 60_000, env: environment({ SHOAL_CACHE_DIR: "none" }) });
  assert.equal(run.status, 1, run.stderr);
  assert.match(run.stderr, new RegExp(`${server().port}`));
});
