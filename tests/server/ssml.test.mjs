// SSML on the routes that take it: parts in their order, exact silence between them, hostile XML.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { Server } from "./harness.mjs";
import { kokoroFlags, kokoroFolder, kokoroRate } from "./kokoro_folder.mjs";
import { readPcm, readWav } from "./sound.mjs";

let folder, server;
before(async () => {
  folder = kokoroFolder(["af_one", "bm_two"]);
  server = await Server.start({ flags: [...kokoroFlags(folder), "--request-timeout-s", "600"] });
}, { timeout: 240_000 });
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, { timeout: 240_000 });

const post = (path, body) => server.http.post(path, body);
const openai = (input, more = {}) => post("/v1/audio/speech", { model: "kokoro", voice: "af_one", input, seed: 5, response_format: "pcm", ...more });
const samplesOf = (answer) => {
  assert.equal(answer.status, 200, answer.text().slice(0, 300));
  assert.ok(answer.whole, "cut off");
  return readPcm(answer.body);
};
const ssml = async (inside, more) => samplesOf(await openai(`<speak>${inside}</speak>`, { ssml: true, ...more }));
const plain = async (input, more) => samplesOf(await openai(input, more));
const silence = (samples, from, count) => samples.subarray(from, from + count).every((sample) => sample === 0);

test("one part is the plain text", async () => {
  assert.deepEqual(await ssml("Hello there."), await plain("Hello there."));
  const s1 = { model: "shoal", voice: "nora" };
  assert.deepEqual(await ssml("<p>Good morning</p>", s1), await plain("Good morning.", s1));
  assert.deepEqual(await ssml("Room <say-as interpret-as='digits'>12</say-as>, <sub alias='the fish'>F</sub>."), await plain("Room one two, the fish."));
});

test("a break is exactly so many zeros", async () => {
  const [first, second] = [await plain("Hello there."), await plain("The moon is cold.")];
  for (const stream of [true, false]) {
    const both = await ssml("Hello there.<break time='750ms'/>The moon is cold.<break time='2s'/>", { stream });
    const pause = 0.75 * kokoroRate;
    assert.equal(both.length, first.length + pause + second.length + 2 * kokoroRate);
    assert.deepEqual(both.subarray(0, first.length), first);
    assert.ok(silence(both, first.length, pause) && silence(both, both.length - 2 * kokoroRate, 2 * kokoroRate));
    assert.ok(!silence(both, first.length + pause, second.length));
  }
  const s1 = await ssml("<break time='1s'/>Hello.", { model: "shoal", voice: "nora", sample_rate: 16000 });
  assert.ok(silence(s1, 0, 16000) && !silence(s1, 16000, s1.length - 16000));
});

test("voices and rates hold where they stand", async () => {
  const length = async (text, more) => (await plain(text, more)).length;
  const mixed = await ssml("Hello there.<voice name='bm_two'>The moon is cold.</voice><prosody rate='200%'>Fish swim.</prosody>", { lang_code: "a" });
  const wanted = await length("Hello there.") + await length("The moon is cold.", { voice: "bm_two", lang_code: "a" }) + await length("Fish swim.", { speed: 2 });
  assert.equal(mixed.length, wanted);
});

test("phonemes are read by models of phonemes, and refused of others", async () => {
  const word = "<phoneme alphabet='ipa' ph='fˈɪʃ'>trout</phoneme>";
  assert.deepEqual(await ssml(`The ${word}.`), await plain("The [trout](/fˈɪʃ/)."));
  const refused = await openai(`<speak>${word}</speak>`, { ssml: true, model: "shoal", voice: "nora" });
  assert.equal(refused.status, 400);
  assert.match(refused.json().error.message, /<phoneme>.*no phonemes/);
});

test("Fish's and ElevenLabs' routes, captions and events", async () => {
  const text = "<speak>Hello.<break time='1s'/>Hello.</speak>";
  const fish = await post("/v1/tts", { text, ssml: true, reference_id: "nora", seed: 3, format: "wav" });
  assert.equal(fish.status, 200, fish.text().slice(0, 300));
  const { rate, samples } = readWav(fish.body);
  const quiet = "0,".repeat(rate - 1) + "0";
  assert.ok(samples.join().includes(quiet), "a second of zeros");
  const eleven = await post("/v1/text-to-speech/nora?output_format=pcm_16000", { text, enable_ssml_parsing: true, seed: 3 });
  assert.ok(readPcm(eleven.body).join().includes("0,".repeat(15_999) + "0"));
  const captions = (await post("/dev/captioned_speech", { model: "kokoro", voice: "af_one", input: "<speak>Hello.<break time='2s'/>The moon.</speak>", ssml: true, stream: false })).json();
  const [hello, ...rest] = captions.timestamps;
  assert.equal(hello.word.toLowerCase(), "hello");
  assert.ok(rest.find(({ word }) => word === "moon").start_time > hello.end_time + 2, JSON.stringify(captions.timestamps));
  const events = await openai(text, { ssml: true, stream_format: "sse" });
  assert.match(events.text(), /speech\.audio\.done/);
});

test("what is wrong is refused with its line, before any sound", async () => {
  const wrong = {
    "no XML": ["Hello.", /line 1 of the SSML: not well-formed/], "an unknown element": ["<speak>\n\n<audio src='x'/>a</speak>", /line 3.*<audio>: is not supported/],
    "a voice that is not there": ["<speak>Hello.<voice name='nobody'>Hi.</voice></speak>", /nobody/], "an attribute": ["<speak><prosody pitch='high'>a</prosody></speak>", /<prosody>/],
    "a billion laughs": [`<!DOCTYPE speak [<!ENTITY a "ha"><!ENTITY b "${"&a;".repeat(100)}">]><speak>&b;</speak>`, /<!DOCTYPE>/],
    "a file": ["<!DOCTYPE speak SYSTEM 'file:///etc/passwd'><speak>a</speak>", /<!DOCTYPE>/],
    deep: [`<speak>${"<prosody rate='1'>".repeat(5000)}`, /at most 32/], nothing: ["<speak> <break/> </speak>", /nothing in it that can be spoken/],
  };
  for (const [what, [input, words]] of Object.entries(wrong)) {
    const answer = await openai(input, { ssml: true });
    assert.equal(answer.status, 400, what);
    assert.match(answer.json().error.message, words, what);
  }
  const fast = await openai("<speak><prosody rate='4'>Hello.</prosody></speak>", { ssml: true, speed: 2 });
  assert.match(fast.json().error.message, /speed: expected 0.25 to 4/);
  const noted = await openai("<speak xml:lang='fr-FR'>Hello.</speak>", { ssml: true });
  assert.match(decodeURIComponent(noted.headers["x-shoal-warnings"] ?? ""), /xml:lang/);
});

test("forty random texts are as long as their parts", { timeout: 300_000 }, async () => {
  const texts = ["Hello there.", "The moon is cold.", "Fish swim."], voices = ["af_one", "bm_two"];
  const lengths = new Map();
  for (const text of texts) for (const voice of voices) lengths.set(text + voice, (await plain(text, { voice, lang_code: "a" })).length);
  let seed = 3;
  const draw = (below) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % 65_521 % below;
  await Promise.all(Array.from({ length: 40 }, async () => {
    let inside = "", wanted = 0;
    for (let part = 1 + draw(4); part > 0; --part) {
      const text = texts[draw(3)], voice = voices[draw(2)], ms = draw(20) * 5;
      inside += `<voice name="${voice}">${text}</voice><break time="${ms}ms"/>`;
      wanted += lengths.get(text + voice) + Math.round((ms * kokoroRate) / 1000);
    }
    assert.equal((await ssml(inside, { lang_code: "a" })).length, wanted, inside);
  }));
});
