// GET /v1/audio/stream: text in as a language model writes it, sound out as it is made (docs/LIVE.md).
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import { WebSocket } from "./clients.mjs";
import { Server, sharedServer, slowness, until } from "./harness.mjs";
import { raw } from "./http.mjs";
import { assertSpeech, magic, readPcm } from "./sound.mjs";

const Socket = await WebSocket();
const server = sharedServer({ before, after });
const story = "Once upon a time there was a shoal of small silver fish. They swam where the big ones could not. ";

// An open conversation: everything that came, and what comes next.
class Conversation {
  static async open(which = server(), { path = "/v1/audio/stream", headers } = {}) {
    const socket = new Socket(`ws://127.0.0.1:${which.port}${path}`, { headers, perMessageDeflate: false });
    const conversation = new Conversation(socket);
    await new Promise((resolve, reject) => {
      socket.on("open", resolve);
      socket.on("error", reject);
      socket.on("unexpected-response", (_, answer) => reject(Object.assign(new Error("refused"), { status: answer.statusCode })));
    });
    return conversation;
  }
  constructor(socket) {
    this.socket = socket;
    this.messages = [];  // parsed, in order; sound as {type: "sound", bytes}
    this.closed = new Promise((resolve) => socket.on("close", (code, reason) => resolve((this.close = { code, reason: String(reason) }))));
    socket.on("message", (data, binary) => {
      this.messages.push(binary ? { type: "sound", bytes: Buffer.from(data) } : JSON.parse(data));
    });
  }
  say(type, fields = {}) {
    this.socket.send(JSON.stringify({ type, ...fields }));
  }
  async wait(type, test = () => true, seconds = 20) {
    return until(`a message "${type}"`, () => {
      const found = this.messages.find((message) => message.type === type && test(message));
      if (!found && this.close) throw new Error(`closed with ${JSON.stringify(this.close)} before "${type}"`);
      return found;
    }, seconds);
  }
  sound(id) {
    // Sound belongs to the utterance that was started last before it.
    let current;
    const pieces = [];
    for (const message of this.messages) {
      if (message.type === "started") current = message.id;
      if (message.type === "sound" && (id === undefined || current === id)) pieces.push(message.bytes);
    }
    return Buffer.concat(pieces);
  }
  async end() {
    this.socket.close();
    await this.closed;
  }
}

// Speaks a text that comes in pieces, and returns its sound.
async function speak(pieces, start = {}) {
  const live = await Conversation.open();
  live.say("start", { seed: 4, ...start });
  for (const text of pieces) live.say("text", { text });
  live.say("end");
  const done = await live.wait("done");
  assert.equal(done.outcome, "completed", JSON.stringify(done));
  const started = live.messages.find((message) => message.type === "started");
  const sound = live.sound();
  await live.end();
  return { sound, started, done, segments: live.messages.filter((message) => message.type === "segment") };
}

test("text in pieces sounds the same however it is cut", async () => {
  const whole = await speak([story]);
  assertSpeech(readPcm(whole.sound), whole.started.sample_rate);
  assert.ok(Math.abs(whole.done.seconds - whole.sound.length / 2 / whole.started.sample_rate) < 0.01);
  const letters = await speak([...story]);
  assert.deepEqual(letters.sound, whole.sound);
  assert.equal(letters.segments.map((segment) => segment.text).join(""), whole.segments.map((segment) => segment.text).join(""));
  const words = await speak(story.match(/\S+\s*/g));
  assert.deepEqual(words.sound, whole.sound);
});

test("sound comes before the text has ended", async () => {
  const live = await Conversation.open();
  live.say("start", { seed: 4 });
  live.say("text", { text: story });
  await live.wait("sound");
  live.say("text", { text: story });
  live.say("end");
  await live.wait("done");
  await live.end();
});

test("flush speaks the text so far", async () => {
  const live = await Conversation.open();
  live.say("start", { seed: 4 });
  live.say("text", { text: "Wait for it" });
  live.say("flush");
  await live.wait("sound");
  live.say("end");
  assert.equal((await live.wait("done")).outcome, "completed");
  await live.end();
});

for (const format of ["wav", "opus", "flac", "mp3", "aac"]) {
  test(`speaks ${format}`, async () => {
    const { sound, started } = await speak(["Good morning."], { format });
    assert.ok(magic[format](sound), sound.subarray(0, 16).toString("hex"));
    assert.equal(started.format, format);
  });
}

test("several utterances on one connection, each by its own settings", async () => {
  const live = await Conversation.open();
  for (const id of ["one", "two", "three"]) {
    live.say("start", { id, seed: id === "two" ? 5 : 4 });
    live.say("text", { text: "Good morning." });
    live.say("end");
    await live.wait("done", (message) => message.id === id);
  }
  const [one, two, three] = ["one", "two", "three"].map((id) => live.sound(id));
  assert.ok(one.length > 1000);
  assert.deepEqual(three, one);
  assert.notDeepEqual(two, one);
  await live.end();
});

test("cancel ends an utterance at once, and the next one speaks", async () => {
  const live = await Conversation.open();
  live.say("start", { id: "long" });
  live.say("text", { text: story.repeat(20) });
  await live.wait("sound");
  live.say("cancel");
  assert.equal((await live.wait("done")).outcome, "cancelled");
  await until("nothing to speak", async () => (await server().metrics()).value("shoal_engine_requests") === 0, 10);
  live.say("start", { id: "next", seed: 4 });
  live.say("text", { text: "Good morning." });
  live.say("end");
  assert.equal((await live.wait("done", (message) => message.id === "next")).outcome, "completed");
  await live.end();
});

test("ping is answered, in the protocol's frames and as a message", async () => {
  const live = await Conversation.open();
  const pong = new Promise((resolve) => live.socket.on("pong", resolve));
  live.socket.ping("hello");
  assert.equal(String(await pong), "hello");
  live.say("ping");
  await live.wait("pong");
  await live.end();
});

test("errors are reported and the conversation continues", async () => {
  const live = await Conversation.open();
  for (const [what, text] of Object.entries({
    "no JSON": "hello", "no object": "[1]", "no type": "{}", "unknown type": '{"type":"sing"}', "unknown field": '{"type":"ping","x":1}',
    "text before start": '{"type":"text","text":"x"}', "end before start": '{"type":"end"}', "too hot": '{"type":"start","temperature":1e308}',
    "wrong kind": '{"type":"start","seed":"x"}', "unknown voice": '{"type":"start","voice":"nobody here"}',
    "path as voice": '{"type":"start","voice":"../../etc"}', deep: "[".repeat(100_000), "not audio": '{"type":"start","references":[{"audio":"AAAA","text":"x"}]}',
  })) {
    const before_it = live.messages.length;
    live.socket.send(text);
    const error = await until(`an error for ${what}`, () => live.messages.slice(before_it).find((message) => message.type === "error"));
    assert.ok(error.message && error.code && error.request_id, JSON.stringify(error));
  }
  live.say("start", { id: "fine", seed: 4 });
  live.say("text", { text: "Good morning." });
  live.say("end");
  assert.equal((await live.wait("done", (message) => message.id === "fine")).outcome, "completed");
  await live.end();
});

test("the speech of a client that vanishes is cancelled", async () => {
  const conversations = await Promise.all(Array.from({ length: 6 }, () => Conversation.open()));
  for (const live of conversations) {
    live.say("start");
    live.say("text", { text: story.repeat(30) });
  }
  await Promise.all(conversations.map((live) => live.wait("sound")));
  conversations.forEach((live) => live.socket.terminate());
  await server().assertSpeaks();
});

test("a key and an upgrade are required", async () => {
  const plain = await server().http.get("/v1/audio/stream");
  assert.ok([400, 426].includes(plain.status), `${plain.status}`);
  const guarded = await Server.start({ env: { SHOAL_API_KEY: "sesame" } });
  try {
    await assert.rejects(Conversation.open(guarded), { status: 401 });
    const live = await Conversation.open(guarded, { headers: { authorization: "Bearer sesame" } });
    await live.end();
    await assert.rejects(Conversation.open(guarded, { path: "/v1/tts", headers: { authorization: "Bearer sesame" } }));
  } finally {
    await guarded.stop();
  }
});

const upgrade = "GET /v1/audio/stream HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

test("half-sent messages of many connections share the memory of bodies", async () => {
  const size = 15 << 20;
  const half = Buffer.alloc(14 + size - 1, 120);  // a masked text whose last byte never comes
  half.set([0x81, 0xff, 0, 0, 0, 0, 0, 0xf0, 0, 0, 0, 0, 0, 0]);
  const small = await Server.start({ flags: ["--max-body-mb", "16", "--max-body-memory-mb", "64"] });
  const closed = [];
  const sockets = Array.from({ length: 12 }, () => {
    const socket = net.connect(small.port, "127.0.0.1", () => socket.write(upgrade));
    socket.once("data", () => {
      socket.on("data", (bytes) => bytes[0] === 0x88 && closed.push(bytes.readUInt16BE(2)));
      socket.write(half);
    });
    return socket.on("error", () => {});
  });
  try {
    await until("most to be sent away", () => closed.length >= 8, 60);
    assert.ok(closed.every((code) => code === 1013), `closed with ${closed}`);
    const held = (await small.metrics()).value("shoal_http_body_bytes");
    assert.ok(held >= size && held <= 64 << 20, `shoal_http_body_bytes says ${held}`);
    sockets.forEach((socket) => socket.destroy());
    await until("its memory back", async () => (await small.metrics()).value("shoal_http_body_bytes") === 0);
    await small.assertSpeaks();
  } finally {
    sockets.forEach((socket) => socket.destroy());
    await small.stop();
  }
});

test("a browser sends its key as a subprotocol, and the key stays secret", async () => {
  const key = "sk-live/1=2", base64 = Buffer.from(key).toString("base64url");
  const locked = await Server.start({ env: { SHOAL_API_KEY: key } });
  const upgraded = (protocols) =>
    raw(locked.port, [upgrade.replace(/\r\n$/, `Sec-WebSocket-Protocol: ${protocols}\r\n\r\n`)], { patience_ms: 2000 * slowness });
  try {
    const answer = await upgraded(`shoal, shoal-api-key-base64url.${base64}`);
    assert.equal(answer.status, 101, answer.text);
    assert.match(answer.text, /^Sec-WebSocket-Protocol: shoal\r$/m);
    assert.ok(!answer.text.includes(base64));
    for (const wrong of ["shoal", "shoal, shoal-api-key.wrong", "shoal-api-key."])
      assert.equal((await upgraded(wrong)).status, 401, wrong);
    const socket = new Socket(`ws://127.0.0.1:${locked.port}/v1/audio/stream`, ["shoal", `shoal-api-key-base64url.${base64}`]);
    await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
    assert.equal(socket.protocol, "shoal");
    socket.close();
  } finally {
    await locked.stop();
  }
  assert.ok(!locked.log.includes(key) && !locked.log.includes(base64), "the log has the key");
});

test("frames that break the protocol close the connection, nothing else", async () => {
  const frame = (first, length, ...rest) => Buffer.from([first, length, ...rest]);
  for (const [what, bytes] of Object.entries({
    "not masked": frame(0x81, 2, 65, 65), "reserved bit": frame(0xf1, 0x80, 0, 0, 0, 0), "unknown kind": frame(0x83, 0x80, 0, 0, 0, 0),
    "2^63 bytes": frame(0x81, 0xff, 0xff, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0), "long ping": frame(0x89, 0xfe, 1, 0, 0, 0, 0, 0),
    "goes on with nothing": frame(0x80, 0x81, 0, 0, 0, 0, 65), "not UTF-8": frame(0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe), "ping in parts": frame(0x09, 0x80, 0, 0, 0, 0),
    noise: Buffer.alloc(4096, 0xff),
  })) {
    await new Promise((resolve, reject) => {
      const socket = net.connect(server().port, "127.0.0.1", () => socket.write(upgrade));
      const limit = setTimeout(() => reject(new Error(`${what}: still open`)), 15_000 * slowness);
      socket.once("data", (answer) => {
        assert.match(String(answer), /^HTTP\/1\.1 101/);
        socket.write(bytes);
        socket.end();
      });
      socket.resume().on("error", () => {}).on("close", () => (clearTimeout(limit), resolve()));
    });
  }
  await server().assertSpeaks();
});

test("a message that is too big is refused with an error", async () => {
  const live = await Conversation.open();
  live.socket.on("error", () => {});
  live.say("text", { text: "x".repeat(100 << 20) });
  const { code } = await live.closed;
  assert.ok([1009, 1006].includes(code), `${code}`);
  await server().assertSpeaks();
});

test("SIGTERM: the current speech is finished, then the server closes the connection", async () => {
  const leaving = await Server.start();
  const live = await Conversation.open(leaving);
  live.say("start", { seed: 4 });
  live.say("text", { text: story });
  live.say("end");
  await live.wait("sound");
  const idle = await Conversation.open(leaving);
  leaving.signal("SIGTERM");
  assert.equal((await idle.closed).code, 1001);
  assert.equal((await live.wait("done")).outcome, "completed");
  await live.closed;
  await leaving.stop();
});

test("after the grace time the current speech fails, waiting utterances are cancelled, and both connections are closed", async () => {
  const leaving = await Server.start({ flags: ["--grace-s", "1", "--request-timeout-s", "300"] });
  const speaking = await Conversation.open(leaving), waiting = await Conversation.open(leaving);
  for (const live of [speaking, waiting]) live.say("start", { seed: 4 });
  waiting.say("text", { text: "Once upon" });
  speaking.say("text", { text: story.repeat(200) });
  speaking.say("end");
  await waiting.wait("started");
  await speaking.wait("sound");
  leaving.signal("SIGTERM");
  for (const [live, outcome] of [[speaking, "failed"], [waiting, "cancelled"]]) {
    const { code } = await live.closed;
    const told = live.messages.filter(({ type }) => ["error", "done"].includes(type));
    assert.equal(code, 1001, JSON.stringify(told));
    assert.equal(told.find(({ type }) => type === "done")?.outcome, outcome, JSON.stringify(told));
    assert.ok(told.every(({ type, code }) => type === "done" || code === "unavailable"), JSON.stringify(told));
  }
  await leaving.stop();
});
