// `shoal bench serve` at servers whose behaviour is known: what it asks them, and what it says of those that are no good.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { environment, program, slowness } from "./harness.mjs";
import { clip } from "./sound.mjs";

const folder = mkdtempSync(join(tmpdir(), "shoal_bench_faults_"));
const open = [];
after(() => {
  open.forEach((server) => server.closeAllConnections() ?? server.close());
  rmSync(folder, { recursive: true, force: true });
});

// A server that hands each request, with its body read, to `answer(request, response, number)`.
async function fake(answer, tls) {
  let number = 0;
  const requests = [];
  const handle = async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    request.body = parts.length > 0 ? JSON.parse(Buffer.concat(parts)) : null;
    requests.push(request);
    answer(request, response, number++);
  };
  const server = tls ? https.createServer(tls, handle) : http.createServer(handle);
  open.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `${tls ? "https" : "http"}://127.0.0.1:${server.address().port}`, requests, server };
}
const second = clip(1, 24000);
const speak = (response) => response.writeHead(200, { "content-type": "audio/wav", "content-length": second.length }).end(second);

function bench(url, output, ...args) {
  return new Promise((resolve) => {
    execFile(program, ["bench", "serve", url, "--output", output, ...args], { env: environment(), cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}
const json = (...names) => JSON.parse(readFileSync(join(folder, ...names)));
const lines = (run) => readFileSync(join(folder, run, "requests.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
const small = ["--concurrency", "1", "--requests", "4", "--warm-up", "0"];

// The trial fails: one sentence, exit code 1, and the same in the run's folder.
async function assertFails(url, output, kind, sentence, ...args) {
  const { code, stdout, stderr } = await bench(url, output, ...small, ...args);
  assert.equal(code, 1, stdout + stderr);
  assert.match(stderr, sentence);
  assert.equal(stderr.trim().split("\n").length, 1, stderr);
  const run = json(output, "run.json");
  assert.equal(run.outcome, "failed");
  assert.match(run.error, sentence);
  assert.equal(run.trial.failure.kind, kind);
  assert.equal(run.trial.outcome, "failed");
}

test("nobody listens", async () => {
  const { url, server } = await fake(() => {});
  await new Promise((resolve) => server.close(resolve));
  await assertFails(url, "nobody", "connect", /cannot connect: Connection refused/);
});

test("a server that answers nothing", async () => {
  const { url } = await fake(() => {});
  await assertFails(url, "nothing", "timeout", /no answer after 0.5 s, 0 bytes/, "--timeout", "0.5");
  const live = await fake(() => {});
  live.server.on("upgrade", () => {});
  await assertFails(`${live.url}/v1/audio/stream`, "nothing_live", "timeout", /no answer after 0.5 s/, "--timeout", "0.5");
});

test("a page of HTML", async () => {
  const { url } = await fake((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>Welcome</html>"));
  await assertFails(url, "html", "not_sound", /expected sound, got text\/html: <html>Welcome<\/html>/);
  await assertFails(`${url}/v1/tts/batch`, "html_batch", "not_sound", /expected sound, got text\/html/);
  await assertFails(`${url}/v1/audio/stream`, "html_live", "bad_http", /no WebSocket/);
});

test("errors of the server", async () => {
  const { url } = await fake((_, response) => response.writeHead(500, { "content-type": "application/json" }).end('{"detail": "out of memory"}'));
  await assertFails(url, "errors", "status_500", /status 500: \{"detail": "out of memory"\}/);
});

test("errors of the server after a trial that went well", async () => {
  const { url } = await fake((_, response, number) => (number === 0 ? speak(response) : response.writeHead(503).end("full")));
  const done = await bench(url, "later", ...small);
  assert.equal(done.code, 1);
  assert.match(done.stderr, /no request of the run was answered with sound/);
  assert.match(done.stdout, /4 of 4 failed, status_503; the first: status 503: full/);
  assert.equal(json("later", "summary.json").levels[0].failures.status_503.count, 4);
  assert.equal(json("later", "run.json").outcome, "failed");
  assert.ok(lines("later").every((line) => line.status === 503 && line.failure.kind === "status_503"));
});

test("streams without an end", async () => {
  const stream = (type, bytes) => fake((_, response) => {
    response.writeHead(200, { "content-type": type });
    response.write(bytes.subarray(0, 44));
    const timer = setInterval(() => response.write(bytes.subarray(44)), 10);
    response.on("close", () => clearInterval(timer));
  });
  const unknown = Buffer.from(clip(1, 1000));
  unknown.writeUInt32LE(0xffffffff, 40);
  await assertFails((await stream("audio/wav", unknown)).url, "endless", "timeout", /not whole after 1 s, \d+ bytes/, "--timeout", "1");
  const hour = Buffer.concat([unknown, Buffer.alloc(1_000_000)]);  // 500 s at a time
  await assertFails((await stream("audio/wav", hour)).url, "endless_hour", "endless", /more than \d+ s of sound, and no end/);
  await assertFails((await stream("text/html", Buffer.alloc(400_000, "x"))).url, "endless_html", "not_sound", /got text\/html/);
});

test("a certificate that does not match", async () => {
  const [cert, key] = ["certificate.pem", "key.pem"].map((name) => join(folder, name));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:elsewhere.example", "-keyout", key, "-out", cert], { stdio: "ignore" });
  const { url } = await fake((_, response) => speak(response), { cert: readFileSync(cert), key: readFileSync(key) });
  await assertFails(url, "unknown_authority", "certificate", /the certificate of 127.0.0.1:\d+ is not accepted/);
  await assertFails(url, "another_host", "certificate", /the certificate of 127.0.0.1:\d+ is/, "--ca-file", cert);
});

test("what is asked is what the options say", async () => {
  const { url, requests } = await fake((_, response) => speak(response));
  const done = await bench(url, "asked", "--concurrency", "2", "--requests", "6", "--warm-up", "3", "--texts", "long", "--voice", "a,b,c",
    "--model", "m", "--speech-seed", "100", "--header", "X-Team: tea-time", "--api-key", "secret", "--field", "stream=true");
  assert.equal(done.code, 0, done.stderr);
  assert.equal(requests.length, 1 + 3 + 6, "a trial, a warm-up, the level");
  assert.equal(lines("asked").length, 6);
  assert.deepEqual(lines("asked").map((line) => line.index).sort(), [4, 5, 6, 7, 8, 9]);
  const seeds = requests.map(({ body }) => body.seed).sort((a, b) => a - b);
  assert.deepEqual(seeds, Array.from({ length: 10 }, (_, i) => 100 + i));
  for (const { headers, body } of requests) {
    assert.equal(headers["x-team"], "tea-time");
    assert.equal(headers.authorization, "Bearer secret");
    assert.equal(body.voice, ["a", "b", "c"][(body.seed - 100) % 3], "voices in turn");
    assert.equal(body.model, "m");
    assert.equal(body.stream, true);
    assert.ok(body.input.length >= 700);
  }
  assert.equal(new Set(requests.map(({ body }) => body.input)).size, 10, "no text twice");
  const sums = new Set(lines("asked").map((line) => line.sum));
  assert.equal(sums.size, 1, "the server always says the same");
  for (const secret of ["secret", "tea-time"]) assert.ok(!JSON.stringify(json("asked", "run.json").command).includes(secret));
});

test("short and medium texts, and the model on Fish's route", async () => {
  const { url, requests } = await fake((_, response) => speak(response));
  for (const [set, least, most] of [["short", 1, 60], ["medium", 60, 210]]) {
    requests.length = 0;
    const done = await bench(`${url}/v1/tts`, set, ...small, "--texts", set, ...(set === "short" ? ["--model", "s2"] : []));
    assert.equal(done.code, 0, done.stderr);
    for (const { body } of requests) assert.ok(body.text.length >= least && body.text.length <= most, body.text);
    for (const { body } of requests) assert.equal(body.model, set === "short" ? "s2" : undefined);
  }
});

test("slow readers and a rate of PCM", async () => {
  const { url } = await fake((_, response) => response.writeHead(200, { "content-type": "audio/pcm" }).end(second.subarray(44)));
  const pcm = ["--format", "pcm", "--pcm-rate", "24000"];
  const slow = await bench(url, "slow", ...small, ...pcm, "--slow-readers", "100%");
  assert.equal(slow.code, 1, "nobody else was there");
  const [level] = json("slow", "summary.json").levels;
  assert.equal(level.requests.slow, 4);
  assert.equal(level.requests.completed, 0);
  assert.ok(lines("slow").every((line) => line.slow && line.rate_hz === 24000));
  assert.ok(lines("slow").every((line) => line.latency_ms > 300 * (slowness > 1 ? 0 : 1)), "half a second of the second is read at half speed");
  for (const args of [["--pcm-rate", "24000"], ["--items", "2"], ["--ca-file", "x"], ["--fresh-references", "request"]]) {
    const refused = await bench(url, "refused", ...small, ...args);
    assert.equal(refused.code, 2, args.join(" "));
    assert.match(refused.stderr, new RegExp(`^shoal: ${args[0].slice(2)}: `), args.join(" "));
  }
});

test("one answer in twenty is dropped", async () => {
  const { url } = await fake((request, response, number) => (number % 20 === 7 ? request.socket.destroy() : speak(response)));
  const done = await bench(url, "dropped", "--concurrency", "4", "--requests", "99", "--warm-up", "0");
  assert.equal(done.code, 0, done.stderr);
  const [level] = json("dropped", "summary.json").levels;
  assert.equal(level.requests.completed, 94);
  assert.equal(level.failures.no_answer.count, 5);
  assert.match(done.stdout, /5 of 99 failed, no_answer; the first: no answer: the server closed the connection/);
});
