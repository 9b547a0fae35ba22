// fish-audio-sdk, a package of others for Fish Audio's hosted service, with its address changed to this server's.
import assert from "node:assert/strict";
import { createWriteStream, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { after, before, test } from "node:test";
import { sharedServer, until, withServer } from "../server/harness.mjs";
import { clip } from "../server/sound.mjs";
import { guardedBy, load, onePlace, oneThread } from "./clients.mjs";
import { assertSilence, heard, likeness, loudness, pitch, seconds } from "./heard.mjs";

const { HttpCodeError, ReferenceAudio, Session, TTSRequest, WebSocketError, WebSocketSession } = await load("fish-audio-sdk");
console.log = console.error = () => {};  // it logs each request, clips and all

const server = sharedServer({ before, after }, oneThread);
const text = "The train leaves at noon.";
const speech = (options, { which = server(), words = text, key = "none", headers } = {}) =>
  new Session(key, which.url).tts(new TTSRequest(words, options), headers);

async function bytesOf(...request) {
  const pieces = [];
  for await (const piece of speech(...request)) pieces.push(piece);
  return Buffer.concat(pieces);
}
const say = async (options, more) => heard(await bytesOf(options, more), options?.format ?? "mp3");
const thrown = (...request) => bytesOf(...request).then(() => null, (error) => error);

test("speaks without any option: mp3, 128 kbit/s", async () => {
  const samples = await say();
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
});

for (const format of ["mp3", "wav", "pcm"]) {
  test(`a saved ${format} is a playable file`, async () => {
    const path = join(server().dir, `said.${format}`);
    await pipeline(Readable.from(speech({ format, sampleRate: 24000, referenceId: "nora" })), createWriteStream(path));
    const samples = heard(readFileSync(path), format);
    assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
  });
}

test("the model header of the client's documentation is accepted", async () => {
  assert.ok(seconds(await say({}, { headers: { model: "s1" } })) > 0.8);
});

test("sound arrives while more is being made", async () => {
  const pieces = speech({}, { words: text.repeat(30) });
  const first = await pieces.next();
  assert.ok(!first.done && first.value.length > 0);
  assert.notEqual((await server().metrics()).value("shoal_engine_requests"), 0, "all was made before the first piece came");
  await pieces.return();
  await until("no speech", async () => (await server().speaking()) === 0);
});

test("a stored voice is followed by its referenceId", async () => {
  const pitchOf = async (referenceId) => pitch(await say({ referenceId, format: "wav" }));
  const [nora, oscar] = [await pitchOf("nora"), await pitchOf("oscar")];
  assert.ok(nora > 1.25 * oscar, `nora ${nora} Hz, oscar ${oscar} Hz`);
});

test("a recording is followed as a reference: a Buffer, which it sends as JSON's list of bytes, or base64", async () => {
  const audio = clip(2, 8000, 110);
  for (const sent of [audio, audio.toString("base64")]) {
    const samples = await say({ references: [new ReferenceAudio(sent, "Hm, hm, hm.")] });
    assert.ok(samples.length > 0);
  }
});

test("prosody is followed", async () => {
  const lengthAt = async (speed) => seconds(await say({ format: "wav", prosody: { speed, volume: 0 } }));
  const [slow, fast] = [await lengthAt(0.5), await lengthAt(2)];
  assert.ok(slow > 2.5 * fast, `${slow} s, ${fast} s`);
});

test("emoji alone are a short silence", async () => {
  assertSilence(await say({}, { words: "🎉🎉" }));
});

test("errors are of the client's own type, with the status", async () => {
  for (const [options, status] of [[{ format: "mp4" }, 422], [{ referenceId: "nobody here" }, 404]]) {
    const error = await thrown(options);
    assert.ok(error instanceof HttpCodeError, String(error));
    assert.equal(error.status, status);
  }
});

test("a full server gives an error of its own that says so", withServer(onePlace, async (narrow) => {
  const first = speech({}, { which: narrow, words: text.repeat(30) });
  await first.next();
  assert.equal((await thrown({}, { which: narrow }))?.status, 429);
  await first.return();
  await until("a free place", async () => (await thrown({}, { which: narrow })) === null);
}));

test("a valid key is accepted, a wrong one refused", withServer(guardedBy("sesame"), async (guarded) => {
  assert.equal((await thrown({}, { which: guarded, key: "wrong" }))?.status, 401);
  assert.ok((await say({}, { which: guarded, key: "sesame" })).length > 0);
}));

async function live(options, { words = ["The train ", "leaves at noon."], key = "none", which = server() } = {}) {
  const session = new WebSocketSession(key, which.url.replace("http", "ws"));
  const stream = (async function* () { yield* words; })();
  const pieces = [];
  for await (const piece of session.tts(new TTSRequest("", options), stream)) pieces.push(piece);
  return heard(Buffer.concat(pieces), options.format ?? "mp3");
}

test("text in pieces becomes sound: pcm, mp3", async () => {
  const samples = await live({ format: "pcm", sampleRate: 24000 });
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100, `${seconds(samples)} s`);
  assert.ok(seconds(await live({})) > 0.8);
});

test("a live text follows a stored voice", async () => {
  const pitchOf = async (referenceId) => pitch(await live({ referenceId, format: "pcm", sampleRate: 24000 }));
  const [nora, oscar] = [await pitchOf("nora"), await pitchOf("oscar")];
  assert.ok(nora > 1.25 * oscar, `nora ${nora} Hz, oscar ${oscar} Hz`);
});

test("a live connection that fails says so", async () => {
  const error = await live({ format: "mp4" }).then(() => null, (thrown) => thrown);
  assert.ok(error instanceof WebSocketError, String(error));
});

test("voices are added, listed, changed and deleted", async () => {
  const session = new Session("none", server().url);
  const added = await session.createModel({
    title: "A hum", voices: [clip(3, 16000, 110), clip(2, 16000, 120)], texts: ["Hm, hm, hm.", "Hm, hm."], tags: ["hum"],
    coverImage: Buffer.from("no image"),
  });
  assert.match(added.id, /^[0-9a-f]{32}$/);
  assert.deepEqual([added.title, added.visibility, added.samples.length], ["A hum", "private", 2]);
  const { total, items } = await session.listModels({ self: true, tag: ["hum"], pageSize: 5, sortBy: "created_at" });
  assert.deepEqual([total, items[0].id], [1, added.id]);
  await session.updateModel(added.id, { title: "A moon", description: "It hums.", visibility: "unlist", tags: ["a", "b"] });
  const { title, description, visibility, tags, updated_at } = await session.getModel(added.id);
  assert.deepEqual([title, description, visibility, tags], ["A moon", "It hums.", "unlist", ["a", "b"]]);
  assert.ok(Math.abs(new Date(updated_at) - Date.now()) < 600_000, updated_at);
  assert.ok(seconds(await say({ referenceId: added.id })) > 0);
  await session.deleteModel(added.id);
  const gone = await session.getModel(added.id).then(() => null, (error) => error);
  assert.ok(gone instanceof HttpCodeError && gone.status === 404, String(gone));
  session.close();
});

test("the account never runs dry", async () => {
  const session = new Session("none", server().url);
  const { credit, has_free_credit } = await session.getApiCredit({ checkFreeCredit: true });
  assert.ok(Number(credit) > 1e9 && has_free_credit === true);
  const { type, balance } = await session.getPackage();
  assert.deepEqual([type, balance > 1e9], ["unlimited", true]);
  session.close();
});
