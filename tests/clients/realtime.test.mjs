// OpenAI's own Realtime classes, for Node, for browsers and of the beta, with their address changed to this server's.
// They insist on TLS.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Server, until } from "../server/harness.mjs";
import { guardedBy, load } from "./clients.mjs";

const { default: OpenAI } = await load("openai");
const { OpenAIRealtimeWS } = await load("openai/realtime/ws");
const { OpenAIRealtimeWebSocket } = await load("openai/realtime/websocket");
const { OpenAIRealtimeWS: BetaWS } = await load("openai/beta/realtime/ws");
const { WebSocket } = await load("ws");

const folder = mkdtempSync(join(tmpdir(), "shoal_realtime_"));
const [certificate, key] = ["certificate.pem", "key.pem"].map((name) => join(folder, name));
execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
  "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], { stdio: "ignore" });
const ca = readFileSync(certificate);
// A browser that trusts the certificate.
globalThis.WebSocket = class extends WebSocket {
  constructor(url, protocols) {
    super(url, protocols, { ca });
  }
};

let server;
const ask = (path, body) => new Promise((resolve, reject) => {
  const headers = { authorization: "Bearer sesame", "content-type": "application/json" };
  const request = https.request(`${server.url}${path}`, { method: body ? "POST" : "GET", headers, ca, agent: false }, (answer) => {
    const pieces = [];
    answer.on("data", (piece) => pieces.push(piece)).on("end", () => resolve({ status: answer.statusCode, body: Buffer.concat(pieces) }));
  });
  request.on("error", reject).end(body && JSON.stringify(body));
});
before(async () => {
  const { env } = guardedBy("sesame");
  server = await Server.start({ env, ready: false, scheme: "https", flags: ["--tls-certificate", certificate, "--tls-key", key] });
  await until("/ready", async () => (await ask("/ready")).status === 200, 120);
}, { timeout: 240_000 });
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true });
});

const text = "The train leaves at noon.";
const clientOf = (apiKey = "sesame") => new OpenAI({ apiKey, baseURL: `${server.url}/v1`, dangerouslyAllowBrowser: true });
const model = "gpt-realtime";
const ways = {
  "OpenAIRealtimeWS": (client) => new OpenAIRealtimeWS({ model, options: { ca } }, client),
  "OpenAIRealtimeWebSocket": (client) => new OpenAIRealtimeWebSocket({ model }, client),
  "OpenAIRealtimeWS of the beta": (client) => new BetaWS({ model, options: { ca } }, client),
};

// An open session: everything that came.
async function open(way = "OpenAIRealtimeWS", apiKey) {
  const session = { rt: ways[way](clientOf(apiKey)), events: [], errors: [] };
  session.rt.on("event", (event) => session.events.push(event));
  session.rt.on("error", (error) => session.errors.push(error));
  session.wait = (type) => until(type, () => session.events.find((event) => event.type === type));
  session.say = (words, role = "user") => session.rt.send({ type: "conversation.item.create",
    item: { type: "message", role, content: [{ type: "input_text", text: words }] } });
  session.sound = () => Buffer.concat(session.events.filter(({ type }) => /audio\.delta$/.test(type)).map(({ delta }) => Buffer.from(delta, "base64")));
  await until("the session", () => session.errors[0] || session.events[0]);
  return session;
}
async function spoken(fields = {}) {
  const { body } = await ask("/v1/audio/speech", { model: "tts-1", voice: "nora", input: text, response_format: "pcm", seed: 3, ...fields });
  return body;
}

for (const way of Object.keys(ways)) {
  test(`${way} speaks what the speech route speaks`, async () => {
    const session = await open(way);
    const voice = /beta/.test(way) ? { voice: "nora" } : { type: "realtime", audio: { output: { voice: "nora" } } };
    session.rt.send({ type: "session.update", session: { ...voice, seed: 3 } });
    session.say(text);
    session.rt.send({ type: "response.create" });
    const { response } = await session.wait("response.done");
    assert.equal(response.status, "completed", JSON.stringify(response));
    assert.deepEqual(session.sound(), await spoken());
    assert.equal(response.output[0].content[0].transcript, text);
    assert.ok(response.usage.output_tokens >= session.sound().length / 2400);
    const deltas = session.events.filter(({ type }) => /transcript\.delta$/.test(type)).map(({ delta }) => delta);
    assert.equal(deltas.join(""), text);
    assert.deepEqual(session.errors, []);
    session.rt.close();
  });
}

test("speaks for telephones, with another voice for one response", async () => {
  for (const [type, response_format] of [["audio/pcmu", "ulaw"], ["audio/pcma", "alaw"]]) {
    const session = await open();
    session.rt.send({ type: "response.create", response: { conversation: "none", seed: 3, metadata: { call: "7" },
      audio: { output: { voice: "oscar", format: { type } } },
      input: [{ type: "message", role: "user", content: [{ type: "input_text", text }] }] } });
    const { response } = await session.wait("response.done");
    assert.equal(response.metadata.call, "7");
    assert.deepEqual(session.sound(), await spoken({ voice: "oscar", response_format }));
    session.rt.close();
  }
});

test("sound comes while more is made, and response.cancel ends it", async () => {
  const session = await open();
  session.say(text.repeat(30));
  session.rt.send({ type: "response.create" });
  await session.wait("response.output_audio.delta");
  session.rt.send({ type: "response.cancel" });
  const { response } = await session.wait("response.done");
  assert.deepEqual([response.status, response.status_details.reason], ["cancelled", "client_cancelled"]);
  assert.ok(session.sound().length > 0 && session.sound().length < 48_000 * 20);
  session.rt.close();
});

test("what needs ears is refused by name, and the session lives on", async () => {
  const session = await open();
  session.rt.send({ type: "session.update", event_id: "vad",
    session: { type: "realtime", audio: { input: { turn_detection: { type: "server_vad" } } } } });
  session.rt.send({ type: "input_audio_buffer.append", event_id: "mic", audio: "AAAA" });
  await until("two errors", () => session.errors.length === 2);
  assert.deepEqual(session.errors.map(({ error }) => [error.event_id, error.type, error.code, error.param]),
    [["vad", "invalid_request_error", "unsupported", "session.audio.input.turn_detection"], ["mic", "invalid_request_error", "unsupported", "type"]]);
  session.say(text);
  session.rt.send({ type: "response.create" });
  assert.equal((await session.wait("response.done")).response.status, "completed");
  session.rt.close();
});

test("a wrong key is refused, in the header and in the subprotocol", async () => {
  for (const way of Object.keys(ways)) {
    const session = await open(way, "wrong");
    assert.match(session.errors[0].message, /401/);
  }
  assert.ok(!server.log.includes("sesame"), "the log has the key");
});
