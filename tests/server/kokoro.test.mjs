// A Kokoro model beside the built-in voice.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "./clients.mjs";
import { Server, sanitized, until, withServer } from "./harness.mjs";
import { sha256 } from "./http.mjs";
import { kokoroFlags, kokoroFolder, kokoroFrame, kokoroGoldens, kokoroRate } from "./kokoro_folder.mjs";
import { magic, readWav } from "./sound.mjs";

const rate = kokoroRate;
let folder;
let server;
before(async () => {
  folder = kokoroFolder(["af_one", "bm_two", "jf_three"]);
  server = await Server.start({ flags: kokoroFlags(folder), env: { SHOAL_ADMIN_KEY: "open" } });
}, { timeout: 240_000 });
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, { timeout: 240_000 });

const post = (path, body) => server.http.post(path, body);
const speech = (fields) => ({ model: "kokoro", voice: "af_one", input: "Hello there.", seed: 7, response_format: "pcm", ...fields });
const speak = async (fields) => {
  const answer = await post("/v1/audio/speech", speech(fields));
  assert.equal(answer.status, 200, answer.text().slice(0, 300));
  return answer.body;
};
const words = ["Fish", "swim", "under", "the", "cold", "moon", "and", "now", "the", "fish", "is", "cold"];
// So many words, a sentence for every seven of them.
const textOf = (count) => Array.from({ length: count }, (_, i) => words[(i * 5 + count) % words.length] + (i % 7 === 6 ? "." : "")).join(" ") + ".";

test("64 concurrent requests, a third of them cancelled: none is lost or mixed up", async () => {
  const kinds = Array.from({ length: 16 }, (_, i) => ({
    input: textOf(1 + ((i * 11) % 37)), voice: ["af_one", "bm_two", "af_one(2)+bm_two", "jf_three"][i % 4], lang_code: "a",
    speed: [1, 2, 0.5, 4][(i >> 2) % 4], seed: i, stream: i % 3 !== 0,
  }));
  const alone = [];
  for (const kind of kinds) alone.push(sha256(await speak(kind)));
  assert.equal(new Set(alone).size, kinds.length, "the requests must differ");
  const before_it = (await server.metrics()).value("shoal_engine_requests_total", { model: "kokoro", outcome: "completed" });
  const results = await Promise.all(Array.from({ length: 64 }, async (_, i) => {
    const abort = new AbortController();
    const given_up = i % 3 === 1;
    const request = fetch(`${server.url}/v1/audio/speech`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(speech(kinds[i % 16])),
      signal: abort.signal,
    });
    if (given_up) sleep((i * 7) % 200).then(() => abort.abort());
    try {
      const answer = await request;
      return { i, given_up, status: answer.status, sum: sha256(Buffer.from(await answer.arrayBuffer())) };
    } catch (error) {
      return { i, given_up, error };
    }
  }));
  for (const { i, given_up, status, sum, error } of results) {
    if (error) assert.ok(given_up, `request ${i}: ${error}`);  // what had come in time is whole
    else assert.deepEqual([status, sum], [200, alone[i % 16]], `request ${i}`);
  }
  assert.ok(results.filter(({ error }) => error).length >= 3, "nobody gave up in time");
  await until("everything that spoke to end", async () => (await server.speaking()) === 0);
  const metrics = await server.metrics();
  const completed = metrics.value("shoal_engine_requests_total", { model: "kokoro", outcome: "completed" }) - before_it;
  assert.ok(completed >= results.filter(({ error }) => !error).length, `${completed} completed`);
  assert.equal(metrics.value("shoal_engine_requests_total", { model: "kokoro", outcome: "failed" }), 0);
  assert.ok(metrics.value("shoal_batch_size_sum", { model: "kokoro" }) > metrics.value("shoal_batch_size_count", { model: "kokoro" }),
    "nobody was spoken together");
});

test("the first chunk of a long text arrives before the second is spoken", async () => {
  const steps = async () => (await server.http.get("/v1/stats?model=kokoro")).json().steps;
  const input = textOf(600);
  const streamed = async () => {
    const start = await steps();
    const message = await server.http.open("POST", "/v1/audio/speech", { body: speech({ input }) });
    const pieces = [];
    let at_first;
    for await (const piece of message) {
      pieces.push(piece);
      at_first ??= await steps();
    }
    const end = await steps();
    return { pieces, spoken: `${start}, ${at_first} at the first piece, ${end}`, is_early: at_first - start <= 2 && end - at_first >= 3 };
  };
  // Steps are asked for after the piece has come: a stall of this process between the two counts more of them.
  let { pieces, spoken, is_early } = await streamed();
  for (let again = 0; !is_early && again < 2; again++) ({ pieces, spoken, is_early } = await streamed());
  assert.ok(is_early, spoken);
  const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
  assert.ok(pieces[0].length < total / 10, `${pieces[0].length} of ${total} bytes`);
  assert.equal(sha256(Buffer.concat(pieces)), sha256(await speak({ input, stream: false })), "streamed and whole");
});

test("sse carries the same sound", async () => {
  const plain = await speak({});
  const events = (await post("/v1/audio/speech", speech({ stream_format: "sse", input: "Hello there." }))).text()
    .split("\n\n").filter(Boolean).map((event) => JSON.parse(event.slice(6)));
  assert.equal(events.pop().type, "speech.audio.done");
  assert.deepEqual(Buffer.concat(events.map(({ audio }) => Buffer.from(audio, "base64"))), plain);
});

// As text/phonemes/timestamps.h has it, in half frames: when words of these lengths in phonemes are heard; a space stands behind some.
function timesOf(durations, tokens) {
  let left = 2 * Math.max(0, durations[0] - 3), right = left, i = 1;
  return tokens.map(({ word, phonemes, space }) => {
    const length = [...phonemes].length;
    const start_time = left / 80;
    const own = durations.slice(i, i + length).reduce((sum, one) => sum + one, 0), gap = space ? durations[i + length] : 0;
    left = right + 2 * own + gap;
    right = left + gap;
    i += length + (space ? 1 : 0);
    return { word, start_time, end_time: (right - gap) / 80 };
  });
}

for (const [voiceName, speed, tokens] of [
  ["af_hello", 3.5, [["Hello", "həlˈO", true], ["world", "wˈɜɹld", false], ["!", "!", false]]],
  ["af_fast", 1.6, [["Kokoro", "kˈOkəɹO", true], ["is", "ɪz", true], ["an", "ɐn", true], ["open", "ˈOpən", true],
    ["weight", "wˈAt", false], [",", ",", true], ["TTS", "tˌitˌiˈɛs", true], ["model", "mˈɑdᵊl", false], [".", ".", false]]],
]) {
  test(`captions of ${voiceName} line up with the durations that the official code gives`, async () => {
    const all = tokens.map(([word, phonemes, space]) => ({ word, phonemes, space }));
    const input = all.map(({ word, phonemes, space }) => (/\w/.test(word) ? `[${word}](/${phonemes}/)` : word) + (space ? " " : "")).join("");
    const { durations } = kokoroGoldens[voiceName];
    const frames = durations.reduce((sum, one) => sum + one, 0);
    const said = await post("/dev/captioned_speech", speech({ voice: voiceName, input, speed, stream: false, response_format: "wav" }));
    assert.equal(said.status, 200, said.text());
    const { audio, audio_format, timestamps } = said.json();
    assert.equal(audio_format, "audio/wav");
    const { samples } = readWav(Buffer.from(audio, "base64"));
    assert.equal(samples.length, frames * kokoroFrame);
    const wanted = timesOf(durations, all);
    assert.deepEqual(timestamps.map(({ word }) => word), wanted.map(({ word }) => word));
    for (const [i, { start_time, end_time }] of timestamps.entries()) {
      assert.ok(Math.abs(start_time - wanted[i].start_time) < 1e-6 && Math.abs(end_time - wanted[i].end_time) < 1e-6,
        `${JSON.stringify(timestamps[i])}, not ${JSON.stringify(wanted[i])}`);
    }
    // What is left behind the last word: the closing silence, and three frames of the opening one.
    const rest = samples.length / rate - timestamps.at(-1).end_time;
    assert.ok(Math.abs(rest - (durations.at(-1) + Math.min(3, durations[0])) * 0.025) <= 0.025, `${rest} s`);
  });
}

test("captions of a long text are sent line by line with their sound, and none ends after the sound", async () => {
  const input = textOf(120);
  const answer = await post("/dev/captioned_speech", speech({ input }));
  assert.equal(answer.type, "application/x-ndjson");
  const lines = answer.text().trim().split("\n").map((line) => JSON.parse(line));
  assert.ok(lines.length > 1);
  let bytes = 0, last = 0;
  for (const { audio, timestamps } of lines) {
    bytes += Buffer.from(audio, "base64").length;
    for (const { start_time, end_time } of timestamps) {
      assert.ok(start_time >= last - 1e-9 && end_time >= start_time && end_time <= bytes / 2 / rate + 1e-6);
      last = end_time;
    }
  }
  const audio = Buffer.concat(lines.map((line) => Buffer.from(line.audio, "base64")));
  assert.equal(sha256(audio), sha256(await speak({ input })));
  const said = lines.flatMap(({ timestamps }) => timestamps.map(({ word }) => word)).filter((word) => /\w/.test(word));
  assert.deepEqual(said, input.match(/\w+/g));
});

test("phonemes that the server returns can be spoken", async () => {
  const { phonemes, tokens } = (await post("/dev/phonemize", { text: "Hello there.", language: "a" })).json();
  assert.equal(phonemes, "həlˈO ðˈɛɹ.");
  assert.equal(tokens.length, [...phonemes].length);
  const said = await post("/dev/generate_from_phonemes", { phonemes, voice: "af_one", seed: 7 });
  assert.ok(magic.wav(said.body));
  assert.deepEqual(said.body.subarray(44), await speak({}));
});

test("combined voices are a file that the model can read", async () => {
  const answer = await post("/v1/audio/voices/combine", JSON.stringify("af_one(2)+bm_two(1)"));
  assert.equal(answer.status, 200, answer.text().slice(0, 200));
  assert.equal(answer.body.toString("latin1", 0, 4), "PK\x03\x04");
  writeFileSync(join(folder, "m/voices/af_mixed.pt"), answer.body);
  const again = await server.http.post("/v1/admin/reload", { name: "kokoro" }, { headers: { authorization: "Bearer open" } });
  assert.equal(again.status, 200, again.text());
  assert.deepEqual(await speak({ voice: "af_mixed" }), await speak({ voice: "af_one(2)+bm_two(1)" }));
  const listed = (await server.http.get("/v1/audio/voices?model=kokoro")).json().voices.map(({ id }) => id);
  assert.ok(listed.includes("af_mixed"));
});

// path, body, status, where the answer names the field, the field
const kilo = (count) => "Hello there. ".repeat(Math.ceil(count / 13)).slice(0, count);
const wrong = [
  ["/v1/audio/speech", speech({ voice: "af_hone" }), 400, "voice"],
  ["/v1/audio/speech", speech({ voice: "af_one(0)+bm_two" }), 400, "voice"],
  ["/v1/audio/speech", speech({ lang_code: "q" }), 400, "lang_code"],
  ["/v1/audio/speech", speech({ lang_code: "z" }), 400, "lang_code"],
  ["/v1/audio/speech", speech({ input: "" }), 400, "input"],
  ["/v1/audio/speech", speech({ input: " \n \n" }), 400, "input"],
  ["/v1/audio/speech", speech({ input: kilo(100_000) }), 400, "input"],
  ["/v1/audio/speech", speech({ input: "Hello [pause:1h]" }), 400, "input"],
  ["/v1/audio/speech", speech({ speed: 0 }), 400, "speed"],
  ["/v1/audio/speech", speech({ speed: -1 }), 400, "speed"],
  ["/v1/audio/speech", speech({ model: "kokoro-2" }), 404, "model"],
  ["/v1/audio/speech", speech({ model: "shoal", voice: "default", speed: 5 }), 400, "speed"],
  ["/v1/tts", { model: "kokoro", text: "Hello.", reference_id: "af_hone" }, 404, "af_hone"],
  ["/v1/tts", { model: "kokoro", text: "", reference_id: "af_one" }, 400, "text"],
  ["/v1/tts", { model: "kokoro", text: kilo(100_000) }, 400, "text"],
  ["/v1/tts", { model: "kokoro", text: "Hello.", speed: 0 }, 422, "speed"],
  ["/v1/tts", { model: "kokoro", text: "Hello.", language: "q" }, 400, "language"],
  ["/v1/tts", { model: "nobody", text: "Hello." }, 404, "model"],
  ["/v1/tts/batch", { model: "nobody", items: [{ text: "Hello." }] }, 404, "model"],
  ["/dev/phonemize", { text: "", language: "a" }, 400, "text"],
  ["/dev/phonemize", { text: "Hello", language: "q" }, 400, "language"],
  ["/dev/phonemize", { text: kilo(100_000), language: "a" }, 400, "text"],
  ["/dev/generate_from_phonemes", { phonemes: "", voice: "af_one" }, 400, "phonemes"],
  ["/dev/generate_from_phonemes", { phonemes: "¿¡", voice: "af_one" }, 400, "phonemes"],
  ["/dev/generate_from_phonemes", { phonemes: "həlˈO¿", voice: "af_one", strict_phonemes: true }, 400, "phonemes"],
  ["/dev/generate_from_phonemes", { phonemes: "həlˈO", voice: "af_hone" }, 400, "voice"],
  ["/dev/captioned_speech", { input: "Hello.", voice: "af_one", speed: 0 }, 400, "speed"],
  ["/dev/captioned_speech", { input: "", voice: "af_one" }, 400, "input"],
  ["/dev/captioned_speech", { input: "Hello.", voice: "default", model: "shoal" }, 400, "return_timestamps"],
  ["/v1/audio/voices/combine", { voices: "af_one" }, 400, "voices"],
  ["/v1/audio/voices/combine", { voices: ["af_one", "af_hone"] }, 400, "voice"],
];

for (const [path, body, status, field] of wrong) {
  const shown = JSON.stringify(body);
  test(`${path} refuses ${shown.length > 120 ? `${shown.length} bytes` : shown}`, async () => {
    const answer = await post(path, body);
    assert.equal(answer.status, status, answer.text());
    const told = answer.json();
    if (path.startsWith("/dev/")) assert.equal(told.detail.param, field, answer.text());
    else if (path.startsWith("/v1/audio/")) assert.equal(told.error.param, field, answer.text());
    else assert.ok(told.statusCode === status && told.message.includes(field), answer.text());
    assert.ok(answer.text().length < 1000, "the answer repeats what was sent");
  });
}

test("phonemes unknown to the model are dropped with a warning", async () => {
  const answer = await post("/dev/generate_from_phonemes", { phonemes: "həlˈO¿ ðˈɛɹ.", voice: "af_one" });
  assert.equal(answer.status, 200);
  assert.match(JSON.parse(answer.headers["x-shoal-warnings"])[0], /U\+00BF/);
});

test("two models in one process answer by `model`", async () => {
  const listed = (await server.http.get("/v1/models")).json().data.map(({ id, family, alias_of }) => [id, family, alias_of]);
  const aliases = ["tts-1", "tts-1-hd", "gpt-4o-mini-tts"].map((id) => [id, "s1", "shoal"]);
  assert.deepEqual(listed, [["shoal", "s1", undefined], ["kokoro", "kokoro", undefined], ...aliases]);
  assert.equal((await server.http.get("/v1/models/kokoro")).json().family, "kokoro");
  const say = async (model) => (await post("/v1/audio/speech", speech({ model, voice: "default", response_format: "wav", stream: false }))).body;
  const [own, first, kokoro] = [await say("shoal"), await say("tts-1"), await say("kokoro")];
  assert.equal(readWav(own).rate, 16000);
  assert.equal(readWav(kokoro).rate, rate);
  assert.deepEqual(first, own);
  const tts = (fields) => post("/v1/tts", { text: "Hello there.", seed: 7, ...fields });
  assert.deepEqual((await tts({ model: "kokoro" })).body, kokoro);
  assert.equal(readWav((await tts({})).body).rate, 16000);
  const batch = (await post("/v1/tts/batch", { model: "kokoro", items: [{ text: "Hello there.", seed: 7 }, { text: "x", voice: "nobody" }] })).json();
  assert.deepEqual(Buffer.from(batch.results[0].audio_base64, "base64"), kokoro);
  assert.match(batch.results[1].error, /nobody/);
  const metrics = await server.metrics();
  for (const model of ["shoal", "kokoro"]) {
    assert.equal(metrics.value("shoal_ready", { model }), 1);
    assert.ok(metrics.value("shoal_audio_seconds_total", { model }) > 0, model);
  }
  const health = (await server.http.get("/health")).json();
  assert.deepEqual(health.models.map(({ id, state }) => `${id} ${state}`), ["shoal ready", "kokoro ready"]);
});

test("the WebSocket speaks with the model that `start` names", async () => {
  const Socket = await WebSocket();
  const socket = new Socket(`ws://127.0.0.1:${server.port}/v1/audio/stream`);
  const messages = [], sound = [];
  socket.on("message", (data, binary) => (binary ? sound.push(Buffer.from(data)) : messages.push(JSON.parse(data))));
  await new Promise((resolve) => socket.on("open", resolve));
  const say = (type, fields = {}) => socket.send(JSON.stringify({ type, ...fields }));
  const wait = (type) => until(type, () => messages.find((message) => message.type === type));
  say("start", { model: "nobody" });
  assert.equal((await wait("error")).param, "model");
  say("start", { model: "kokoro", voice: "jf_three", language: "a", speed: 2, seed: 7 });
  assert.equal((await wait("started")).sample_rate, rate);
  for (const text of ["Hello there. ", "The moon is cold. ", "Fish swim now."]) say("text", { text });
  say("end");
  const done = await wait("done");
  assert.equal(done.outcome, "completed", JSON.stringify(messages));
  assert.ok(done.warnings[0].includes("jf_three"));
  const bytes = Buffer.concat(sound).length;
  assert.ok(bytes > 0 && Math.abs(bytes / 2 / rate - done.seconds) < 1e-3, `${bytes} bytes, ${done.seconds} s`);
  socket.close();
});

test("SIGTERM stops both models after their speech is finished", { skip: sanitized && "takes minutes there" }, async () => {
  await withServer({ flags: kokoroFlags(folder) }, async (leaving) => {
    const asked = ["shoal", "kokoro"].map((model) =>
      leaving.http.post("/v1/audio/speech", speech({ model, voice: "default", input: textOf(30), response_format: "wav" })));
    await until("both to speak", async () => {
      const metrics = await leaving.metrics();
      return ["shoal", "kokoro"].every((model) => metrics.value("shoal_engine_submitted_total", { model }) > 0);
    });
    leaving.signal("SIGTERM");
    for (const answer of await Promise.all(asked)) {
      assert.equal(answer.status, 200, answer.text().slice(0, 200));
      assert.ok(answer.whole);
    }
  })();
});
