// What the balancer in front of a fleet answers itself: full, absent, TLS, pages of its own.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import tls from "node:tls";
import { WebSocket } from "./clients.mjs";
import { balanced, Fleet, ready, seesAll, without } from "./fleet_harness.mjs";
import { environment, program, slowness, until } from "./harness.mjs";

const speech = { model: "shoal", input: "Hello.", voice: "default", response_format: "wav" };
// Each family's route, and where its errors have the message.
const forms = [
  ["/v1/audio/speech", speech, (body) => body.error.message],
  ["/v1/tts", { text: "Hello." }, (body) => body.message],
  ["/dev/captioned_speech", speech, (body) => body.detail.message],
  ["/invocations", { text: "Hello." }, (body) => body.error.message],
];

balanced("a full fleet answers 429 in the form of the route, and other routes go on", 2, async (fleet) => {
  await ready(fleet);
  await seesAll(fleet);
  const long = { text: "On and on it goes, with no end in sight. ".repeat(40), seed: 1, streaming: true };
  const inside = [await fleet.front.open("POST", "/v1/tts", { body: long }), await fleet.front.open("POST", "/v1/tts", { body: long })];
  for (const [path, body, message] of forms) {
    const answer = await fleet.front.post(path, body, { headers: { "x-request-id": "mine-1" } });
    assert.equal(answer.status, 429, `${path}: ${answer.text().slice(0, 100)}`);
    assert.match(message(answer.json()), /the fleet has 2 requests inside/);
    assert.match(answer.text(), /"mine-1"/);
    assert.equal(answer.headers["x-request-id"], "mine-1");
    assert.ok(Number(answer.headers["retry-after"]) >= 1);
    const unsafe = await fleet.front.post(path, body, { headers: { "x-request-id": "a\"} b" } });
    assert.match(unsafe.json() && unsafe.headers["x-request-id"], /^[0-9a-f-]{36}$/);
  }
  assert.equal((await fleet.front.get("/v1/audio/voices")).status, 200);
  assert.equal((await fleet.front.get("/health")).status, 200);
  for (const message of inside) message.destroy();
  await until("places to be free", async () => (await fleet.front.post("/v1/tts", { text: "Hello." })).status === 200);
}, ["--queue-limit", "2"]);

balanced("WebSockets pass, and one whose worker dies is closed without a goodbye", 1, async (fleet) => {
  await ready(fleet);
  const Socket = await WebSocket();
  const open = async () => {
    const socket = new Socket(`ws://127.0.0.1:${fleet.front.port}/v1/audio/stream`);
    const seen = { socket, bytes: 0, closed: new Promise((resolve) => socket.on("close", resolve)) };
    socket.on("message", (data, binary) => (binary ? (seen.bytes += data.length) : (seen.last = JSON.parse(data))));
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
    for (const message of [{ type: "start" }, { type: "text", text: "Once upon a time there was a shoal of small silver fish. They swam where the big ones could not. ".repeat(2) }]) socket.send(JSON.stringify(message));
    return seen;
  };
  const whole = await open();
  whole.socket.send(JSON.stringify({ type: "end" }));
  await until("the end of the speech", () => whole.last?.type === "done");
  assert.ok(whole.bytes > 1000);
  const cut = await open();
  await until("sound", () => cut.bytes > 0);
  process.kill(fleet.pid(0), "SIGKILL");
  assert.equal(await cut.closed, 1006);
  whole.socket.close();
  await whole.closed;
  await ready(fleet);
});

test("without a worker each route says so in its own form", { timeout: 60_000 * slowness, skip: without }, async () => {
  const fleet = await Fleet.start(1);
  await ready(fleet);
  assert.deepEqual((await fleet.front.get("/ready")).json(), { ready: true, workers: 1 });
  // The supervisor waits, so that no worker comes back meanwhile.
  const stopped = [fleet.child.pid, fleet.pid(0)];
  stopped.forEach((pid) => process.kill(pid, "SIGSTOP"));
  await until("no worker", async () => (await fleet.front.get("/ready")).status === 503);
  assert.deepEqual((await fleet.front.get("/ready")).json(), { ready: false, workers: 0 });
  const answers = await Promise.all(forms.map(([path, body]) => fleet.front.post(path, body)));
  answers.forEach((answer, at) => {
    assert.equal(answer.status, 503);
    assert.equal(forms[at][2](answer.json()), "no worker is ready");
  });
  process.kill(fleet.child.pid, "SIGCONT");
  await until("the restart", () => fleet.pids(0).length === 2, 40);
  await ready(fleet);
  assert.equal(await fleet.stop(), 0, fleet.log);
});

// A page at the balancer's own name may speak; a page from elsewhere may not.
test("pages of the balancer's own address are not strangers", { timeout: 60_000 * slowness, skip: without }, async () => {
  const fleet = await Fleet.start(1, ["--listen", "0.0.0.0:FRONT"]);
  await ready(fleet);
  const say = (origin) => fleet.front.post("/v1/tts", { text: "Hello." }, { headers: { host: "speech.example:8000", origin } });
  assert.equal((await say("http://speech.example:8000")).status, 200);
  assert.equal((await say("https://speech.example:8000")).status, 200);
  for (const stranger of ["http://elsewhere.example", "http://speech.example:8001", "null"]) assert.equal((await say(stranger)).status, 403, stranger);
  assert.equal(await fleet.stop(), 0, fleet.log);
});

test("TLS at the balancer, and a new certificate on SIGHUP", { timeout: 60_000 * slowness, skip: without }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "shoal_fleet_tls_"));
  const [certificate, key] = ["certificate.pem", "key.pem"].map((name) => join(folder, name));
  const make = () => execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], { stdio: "ignore" });
  make();
  const fleet = await Fleet.start(1, ["--tls-certificate", certificate, "--tls-key", key]);
  const port = fleet.front.port;
  // The certificate's fingerprint, and the first line of the answer to `request`.
  const ask = (request, options = {}) => new Promise((resolve, reject) => {
    const socket = tls.connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options }, () => {
      const { fingerprint256 } = socket.getPeerCertificate();
      let text = "";
      socket.setEncoding("utf8").on("data", (piece) => (text += piece)).on("end", () => resolve([fingerprint256, text.split("\r\n")[0]]));
      socket.write(request);
    });
    socket.on("error", reject);
  });
  const body = JSON.stringify({ text: "Hello." });
  const speak = `POST /v1/tts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  await until("the fleet", async () => /200/.test((await ask(speak).catch(() => ["", ""]))[1]));
  const [before] = await ask(speak);
  // A second address for operators is plain HTTP in front of a fleet: it is not the one that is asked.
  const settings = { SHOAL_LISTEN: `127.0.0.1:${port}`, SHOAL_OPERATOR_LISTEN: "127.0.0.1:1", SHOAL_TLS_CERTIFICATE: certificate, SHOAL_TLS_KEY: key };
  for (const [flags, env] of [[[], settings], [["--tls", `127.0.0.1:${port}`], {}]]) {
    const asked = spawnSync(program, ["ready", ...flags], { encoding: "utf8", env: environment(env) });
    assert.equal(asked.status, 0, asked.stderr);
  }
  await assert.rejects(ask(speak, { maxVersion: "TLSv1.1" }));
  await until("the balancer to be seen", () => /balancer: ready/.test(fleet.log));
  make();
  fleet.child.kill("SIGHUP");
  await until("the new certificate", async () => (await ask(speak))[0] !== before);
  await until("the restart", () => /rolling restart: done/.test(fleet.log), 60);
  const [renewed] = await ask(speak);
  process.kill(fleet.balancerPid(), "SIGKILL");
  await until("the next balancer", async () => (await ask(speak).catch(() => [""]))[0] === renewed);
  assert.equal(await fleet.stop(), 0, fleet.log);
  rmSync(folder, { recursive: true, force: true });
});
