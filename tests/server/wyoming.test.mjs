// The Wyoming protocol as Home Assistant speaks it, over TCP and a UNIX socket; and as nobody should.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { environment, program, sanitized, Server, until } from "./harness.mjs";
import { kokoroFlags, kokoroFolder, kokoroRate } from "./kokoro_folder.mjs";
import { readPcm } from "./sound.mjs";
import { event, Wyoming } from "./wyoming_client.mjs";

const text = "The train leaves at noon.";
const spoken = ["audio-start", "audio-chunk", "audio-stop"];
let folder, path, server;
let strict; // waits for nobody
const portOf = async (which) => Number((await until("its port", () => which.log.match(/spoken at tcp:\/\/\S*:(\d+)/)))[1]);
const start = async (where, flags = []) => {
  const started = await Server.start({ flags: ["--wyoming", `tcp://127.0.0.1:0, unix://${where}`, ...kokoroFlags(folder), ...flags] });
  started.wyoming = await portOf(started);
  return started;
};
before(async () => {
  folder = kokoroFolder(["af_one", "bm_two"]);
  path = join(folder, "w.sock");
  server = await start(path, ["--grace-s", "120"]);
  strict = await start(join(folder, "strict.sock"), ["--max-connections", "24", "--idle-timeout-s", "4", "--body-timeout-s", "2"]);
}, { timeout: 240_000 });
after(async () => {
  await server?.stop();
  await strict?.stop();
  rmSync(folder, { recursive: true, force: true });
}, { timeout: 240_000 });

// Each with a connection of its own.
const withClient = (use, where = () => server.wyoming) => async () => {
  const client = await Wyoming.connect(where());
  try {
    await use(client);
  } finally {
    client.close();
  }
};
const loud = (sound) => readPcm(sound).some((sample) => Math.abs(sample) > 500);

for (const [name, where] of [["TCP", () => server.wyoming], ["a UNIX socket", () => path]]) {
  test(`describe and synthesize over ${name}, as Home Assistant writes them`, withClient(async (client) => {
    client.raw('{"type": "describe", "version": "1.8.0"}\n');
    const { type, data } = await client.next();
    assert.equal(type, "info");
    const [tts] = data.tts;
    assert.ok(tts.installed && tts.supports_synthesize_streaming && tts.version && tts.description);
    assert.equal(typeof tts.attribution.name + typeof tts.attribution.url, "stringstring");
    const voices = Object.fromEntries(tts.voices.map((voice) => [voice.name, voice]));
    assert.deepEqual(voices.default.languages, ["en"]);
    assert.deepEqual(voices.af_one.languages, ["en-US"]);
    assert.deepEqual(voices.bm_two.languages, ["en-GB"]);
    for (const voice of tts.voices) assert.ok(voice.installed && voice.attribution.name && voice.description, voice.name);
    for (const other of ["asr", "handle", "intent", "wake"]) assert.deepEqual(data[other], []);

    client.raw(`{"type": "synthesize", "version": "1.8.0", "data_length": 79}\n{"text": "The train leaves at noon.", "voice": {"name": "nora"}, "context": {}}`);
    const { types, sound, format } = await client.until("audio-stop");
    assert.deepEqual(types, spoken);
    assert.deepEqual(format, { rate: 16000, width: 2, channels: 1 });
    assert.ok(sound.length > 0.8 * 32000 && loud(sound));
  }, where));
}

// Kokoro's noise is drawn for each request; how long a text takes depends on the text, the voice and nothing else.
const say = (text, name) => server.http.post("/v1/audio/speech", { model: "kokoro", voice: name, input: text, response_format: "pcm" });

test("what is heard is as long as HTTP's; data in the line or behind it", withClient(async (client) => {
  const http = await say("Hello there.", "af_one");
  for (const inline of [false, true]) {
    const { sound, format } = await client.say("Hello there.", { name: "af_one" }, { inline });
    assert.equal(format.rate, kokoroRate);
    assert.equal(sound.length, http.body.length);
  }
}));

test("a voice by its language", withClient(async (client) => {
  const wanted = (await client.say("Hello there.", { name: "bm_two" })).sound.length;
  for (const language of ["en-GB", "en_gb"]) assert.equal((await client.say("Hello there.", { language })).sound.length, wanted);
}));

const streamOf = (pieces, voice) => [event("synthesize-start", voice && { voice }),
  ...pieces.map((piece) => event("synthesize-chunk", { text: piece })),
  event("synthesize", { text: pieces.join(""), ...(voice && { voice }) }), event("synthesize-stop")];

test("a stream is spoken once, although Home Assistant repeats its text", withClient(async (client) => {
  const voice = { name: "af_one" };
  client.raw(Buffer.concat(streamOf(["Hello", " the", "re."], voice)));
  const { types, sound } = await client.until("synthesize-stopped");
  assert.deepEqual(types, [...spoken, "synthesize-stopped"]);
  assert.equal((await client.say("Hello there.", voice)).sound.length, sound.length, "the stream, and the whole text");
}));

test("a stream is heard before its end", withClient(async (client) => {
  client.send("synthesize-start", { voice: { name: "clara" } });
  client.send("synthesize-chunk", { text: "Good morning, everybody. This is" });
  const { types } = await client.until("audio-chunk");
  assert.deepEqual(types, ["audio-start", "audio-chunk"]);
  client.send("ping", { text: "still there" });
  assert.deepEqual((await client.until("pong")).data, { text: "still there" });
  client.send("synthesize-chunk", { text: " the end." });
  client.send("synthesize-stop");
  assert.equal((await client.until("synthesize-stopped")).types.at(-2), "audio-stop");
}));

test("texts without words are silence", withClient(async (client) => {
  assert.deepEqual((await client.say(" ... ")).types, ["audio-start", "audio-stop"]);
  client.raw(Buffer.concat(streamOf([])));
  assert.deepEqual((await client.until("synthesize-stopped")).types, ["audio-start", "audio-stop", "synthesize-stopped"]);
}));

test("what asks for no sound is refused by name, and the connection lives", withClient(async (client) => {
  const refused = async (code, words) => {
    const { data } = await client.until("error");
    assert.equal(data.code, code);
    assert.match(data.text, words);
  };
  client.send("transcribe", { name: "whisper" });
  await refused("unsupported", /transcribe/);
  client.send("audio-chunk", { rate: 16000, width: 2, channels: 1 }, { payload: Buffer.alloc(3200) });
  await refused("unsupported", /audio-chunk/);
  client.raw('{"data": {}}\n{"type": "ping", "data_length": 3}\n[1]{"type": "ping", "data": {"words": 1}}\n');
  await refused("invalid_argument", /^type: /);
  await refused("invalid_argument", /^data: /);
  await refused("invalid_argument", /words/);
  client.send("ping");
  assert.deepEqual((await client.next()).data, { text: null });
}));

test("what asks for sound in vain gets an error, and the end that Home Assistant waits for", async () => {
  const wrong = {
    "a voice that is not there": [event("synthesize", { text, voice: { name: "nobody" } }), "not_found", /voice\.name.*nobody/],
    "a language that nobody speaks": [event("synthesize-start", { voice: { name: "af_one", speaker: "other" } }), "unsupported", /voice\.speaker/],
    "no text": [event("synthesize", {}), "invalid_argument", /text/],
    "an unknown field": [event("synthesize", { text, voice: { nmae: "nora" } }), "invalid_argument", /voice\.nmae/],
    "a piece without a stream": [event("synthesize-chunk", { text }), "invalid_argument", /synthesize-start/],
    "an end without a stream": [event("synthesize-stop"), "invalid_argument", /synthesize-start/],
    "a stream in a stream": [Buffer.concat([event("synthesize-start"), event("synthesize-start")]), "invalid_argument", /stream is open/],
    "too much text": [event("synthesize", { text: "Hello. ".repeat(20_000) }), "too_large", /text/],
    "no JSON": [Buffer.from("GET / HTTP/1.1\r\n\r\n"), "invalid_argument", /JSON/],
    "no end of a line": [Buffer.alloc(1_100_000, 97), "too_large", /line/],
    "endless data": [Buffer.from('{"type":"ping","data_length":99999999999}\n'), "too_large", /data_length/],
    "an endless payload": [Buffer.from('{"type":"ping","payload_length":99999999999}\n'), "too_large", /payload_length/],
    "a negative length": [Buffer.from('{"type":"ping","data_length":-5}\n'), "invalid_argument", /data_length/],
    "deep JSON": [Buffer.from(`{"type":"ping","data":${"[".repeat(50_000)}`.concat("\n")), "invalid_argument", /deep|nest/i],
    "half an event": [Buffer.from('{"type":"ping","data_length":10}\n{'), "deadline_exceeded", /too long/],
  };
  for (const [what, [bytes, code, words]] of Object.entries(wrong)) {
    const client = await Wyoming.connect(strict.wyoming);
    client.raw(bytes);
    const { data } = await client.until("error");
    assert.equal(data.code, code, `${what}: ${data.text}`);
    assert.match(data.text, words, what);
    assert.equal(await client.next(), null, `${what}: the end`);
    client.close();
  }
  const client = await Wyoming.connect(strict.wyoming);
  assert.deepEqual((await client.say(text)).types, spoken, "and the server still speaks");
  client.close();
});

test("a client that leaves is spoken to no longer", async () => {
  const leaving = await Promise.all(Array.from({ length: 6 }, async (_, i) => {
    const client = await Wyoming.connect(i % 2 ? server.wyoming : path);
    client.send("synthesize", { text: "Every morning the fishermen went out before the sun was up. ".repeat(40) });
    await client.until("audio-start");
    return client;
  }));
  leaving.forEach((client, i) => (i % 3 ? client.close() : client.socket.end()));
  await until("nothing to be spoken", async () => (await server.speaking()) === 0, 30);
});

test("connections, and their idle time, are limited", async () => {
  const clients = await Promise.all(Array.from({ length: 24 }, () => Wyoming.connect(strict.wyoming)));
  const [first] = clients;
  first.send("ping", {});
  await first.until("pong");  // all before it were accepted
  const late = await Wyoming.connect(strict.wyoming);
  assert.match((await late.until("error")).data.text, /too many connections/);
  assert.equal(await late.next(), null);
  first.send("synthesize-start");
  for (const client of clients.slice(1)) assert.equal(await client.next(), null, "idle");
  assert.match((await first.until("error")).data.text, /no text for 4 seconds/);
  assert.equal(await first.next(), null);
  [late, ...clients].forEach((client) => client.close());
});

test("200 random conversations: every answer in its order, none lost or mixed up", { timeout: 600_000 }, async () => {
  const voices = ["af_one", "bm_two", "af_one(2)+bm_two"];
  const texts = ["Hello there.", "The moon is cold.", "Fish swim under the moon and now the fish is cold."];
  const alone = new Map();  // bytes of the sound of each, by itself
  const quiet = await Wyoming.connect(server.wyoming);
  for (const name of voices) for (const one of texts) alone.set(name + one, (await quiet.say(one, { name })).sound.length);
  quiet.close();
  assert.ok(new Set(alone.values()).size >= alone.size - 1, "they differ");
  let seed = 7;
  const draw = (below) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65_521 % below;
  const acts = {
    describe: () => [event("describe"), ["info"]],
    ping: () => [event("ping", { text: String(draw(9)) }, { inline: draw(2) === 1 }), ["pong"]],
    strange: () => [event("detect", {}, { payload: Buffer.alloc(draw(5000), 10) }), ["error"]],
    say: (name, one) => [event("synthesize", { text: one, voice: { name } }, { inline: draw(2) === 1 }), ["sound"]],
    stream: (name, one) => {
      const cuts = [draw(one.length), draw(one.length)].sort((a, b) => a - b);
      return [Buffer.concat(streamOf([one.slice(0, cuts[0]), one.slice(cuts[0], cuts[1]), one.slice(cuts[1])], { name })), ["sound", "synthesize-stopped"]];
    },
  };
  const plan = () => Array.from({ length: 1 + draw(4) }, () => {
    const kind = Object.keys(acts)[draw(5)];
    const name = voices[draw(3)], one = texts[draw(3)];
    const [bytes, answers] = acts[kind](name, one);
    return { bytes, answers, key: name + one };
  });
  const converse = async (acted, where, cut, leaves) => {
    const client = await Wyoming.connect(where);
    const bytes = Buffer.concat(acted.map((act) => act.bytes));
    client.raw(bytes.subarray(0, cut % bytes.length));
    await sleep(cut % 7);
    client.raw(bytes.subarray(cut % bytes.length));
    if (leaves) return client.close();
    // Pings and lists are answered while something is spoken; sound comes in order.
    const others = acted.flatMap((act) => act.answers).filter((type) => type !== "sound").sort();
    const wanted = acted.filter((act) => act.answers[0] === "sound").map((act) => act.key);
    const got = [];
    let chunks = [];
    while (wanted.length || got.length < others.length) {
      const one = await client.next();
      assert.ok(one, `closed; ${wanted.length} to come`);
      if (one.type === "audio-chunk") chunks.push(one.payload);
      else if (one.type === "audio-stop") assert.equal(Buffer.concat(chunks.splice(0)).length, alone.get(wanted.shift()), "its own sound");
      else if (one.type !== "audio-start") got.push(one.type);
    }
    assert.deepEqual(got.sort(), others);
    client.close();
  };
  for (let done = 0; done < 200; done += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, i) => converse(plan(), i % 2 ? path : server.wyoming, draw(1000), draw(8) === 0)));
  }
  await until("nothing to be spoken", async () => (await server.speaking()) === 0, 30);
  const metrics = await server.metrics();
  assert.ok(metrics.value("shoal_http_requests_total", { route: "wyoming", outcome: "ok" }) > 150);
  assert.equal(metrics.value("shoal_http_requests_total", { route: "wyoming", outcome: "server_error" }) ?? 0, 0);
});

test("a shutdown lets speech end and idle connections go", { timeout: 300_000 }, async () => {
  const [idle, busy, streaming] = await Promise.all([server.wyoming, server.wyoming, path].map(Wyoming.connect));
  busy.send("synthesize", { text: "Good morning, everybody. ".repeat(8) });
  streaming.send("synthesize-start");
  streaming.send("synthesize-chunk", { text: "Good morning. And" });
  await Promise.all([busy.until("audio-start"), streaming.until("audio-start")]);  // both are inside
  server.signal("SIGTERM");
  assert.equal(await idle.next(), null);
  streaming.send("synthesize-chunk", { text: " good night." });
  streaming.send("synthesize-stop");
  await Promise.all([busy.until("audio-stop"), streaming.until("synthesize-stopped")]);
  assert.equal(await busy.next(), null);
  await server.stop();
  assert.ok(!existsSync(path), "the socket's file is gone");
});

const refusedToStart = (flags, words) => {
  try {
    execFileSync(program, ["serve", "--listen", "127.0.0.1:0", ...flags], { env: environment(), encoding: "utf8", stdio: "pipe", timeout: 60_000 });
    assert.fail("it started");
  } catch (error) {
    assert.equal(error.status, 2, error.stderr ?? String(error));
    assert.match(error.stderr, words);
  }
};

test("with keys it stays on this machine, unless the operator says otherwise", async () => {
  refusedToStart(["--api-key", "secret", "--wyoming", "tcp://0.0.0.0:0"], /wyoming_without_key/);
  refusedToStart(["--wyoming", "10200"], /expected tcp:\/\/host:port or unix:/);
  const open = await Server.start({ flags: ["--api-key", "secret", "--wyoming", "tcp://0.0.0.0:0", "--wyoming-without-key"] });
  const client = await Wyoming.connect(await portOf(open));
  assert.deepEqual((await client.say(text)).types, spoken);
  client.close();
  const usage = (await open.http.get("/metrics", { headers: { authorization: "Bearer secret" } })).text();
  assert.match(usage, /shoal_key_requests_total\{key="wyoming"\} 1\n/);
  await open.stop();
});

test("a socket that a dead server left is replaced; a file, and a live server's, are not", async () => {
  const own = mkdtempSync(join(tmpdir(), "shoal_wyoming_"));
  const left = join(own, "w.sock");
  const file = join(own, "file");
  writeFileSync(file, "mine");
  const flags = (where) => ["--wyoming", `unix://${where}`];
  const dead = await Server.start({ flags: flags(left), ready: false });
  await until("it to listen", () => existsSync(left));
  dead.child.kill("SIGKILL");
  await dead.exited;
  const next = await Server.start({ flags: flags(left) });
  const client = await Wyoming.connect(left);
  assert.deepEqual((await client.say(text)).types, spoken);
  client.close();
  for (const [where, words] of [[left, /another program listens there/], [file, /no socket/]]) {
    const refused = await Server.start({ flags: flags(where), ready: false }).catch((error) => error);
    assert.match(String(refused), words);
  }
  await next.stop();
  assert.ok(existsSync(file) && !existsSync(left));
  rmSync(own, { recursive: true });
});
