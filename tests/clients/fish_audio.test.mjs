// Fish Audio's own package for their hosted service, with its address changed to this server's.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer, until, withServer } from "../server/harness.mjs";
import { clip } from "../server/sound.mjs";
import { guardedBy, load, onePlace, oneThread } from "./clients.mjs";
import { assertSilence, heard, likeness, loudness, pitch, seconds } from "./heard.mjs";

const { FishAudioClient, FishAudioError, FlushEvent, RealtimeEvents, UnprocessableEntityError } = await load("fish-audio");
const server = sharedServer({ before, after }, oneThread);
const text = "The train leaves at noon.";
const clientOf = (which = server(), apiKey = "none") => new FishAudioClient({ apiKey, baseUrl: which.url });
const convert = (request, { which, apiKey, backend, ...options } = {}) =>
  clientOf(which, apiKey).textToSpeech.convert({ text, ...request }, backend, { maxRetries: 0, ...options });

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
const say = async (request, options) => heard(await collect(await convert(request, options)), request?.format ?? "mp3");

test("speaks without any option: s1, mp3", async () => {
  const { data, rawResponse } = await convert({}).withRawResponse();
  assert.equal(rawResponse.headers.get("content-type"), "audio/mpeg");
  const samples = heard(await collect(data), "mp3");
  assert.ok(seconds(samples) > 0.8 && loudness(samples) > 100);
});

for (const format of ["mp3", "opus", "wav"]) {
  test(`speaks ${format}, playable from its first byte`, async () => {
    assert.ok(likeness(await say({ format, seed: 3 }), await say({ format: "mp3", seed: 3 })) > 0.95);
  });
}

test("speaks pcm at the requested rate", async () => {
  const samples = await say({ format: "pcm", sample_rate: 24000, seed: 3 });
  assert.ok(likeness(samples, await say({ format: "mp3", seed: 3 })) > 0.95);
});

test("sound arrives while more is being made", async () => {
  const reader = (await convert({ text: text.repeat(30) })).getReader();
  const first = await reader.read();
  assert.ok(!first.done && first.value.length > 0);
  assert.notEqual((await server().metrics()).value("shoal_engine_requests"), 0, "all was made before the first piece came");
  await reader.cancel();
  await until("no speech", async () => (await server().speaking()) === 0);
});

for (const backend of ["s1", "s2-pro", "speech-1.6"]) {
  test(`the header \`model: ${backend}\` of the hosted service is no hindrance`, async () => {
    assert.ok(seconds(await say({}, { backend })) > 0.8);
  });
}

test("a stored voice is followed by its reference_id", async () => {
  const pitchOf = async (reference_id) => pitch(await say({ reference_id, format: "wav" }));
  const [nora, oscar] = [await pitchOf("nora"), await pitchOf("oscar")];
  assert.ok(nora > 1.25 * oscar, `nora ${nora} Hz, oscar ${oscar} Hz`);
});

test("a file is followed as a reference", async () => {
  const request = { format: "pcm", sample_rate: 24000, seed: 3 };
  const audio = new File([clip(3, 16000, 110)], "me.wav");
  const followed = await say({ ...request, references: [{ audio, text: "Hm, hm, hm." }] });
  assert.notDeepEqual(followed, await say(request));
});

test("prosody, bitrates, latency and sampling are accepted", async () => {
  const request = { format: "wav", seed: 3, temperature: 0.7, top_p: 0.7, chunk_length: 200, normalize: true, latency: "balanced" };
  const plain = await say(request);
  const fast = await say({ ...request, prosody: { speed: 2, volume: 0 } });
  assert.ok(Math.abs(2 * fast.length / plain.length - 1) < 0.1, `${seconds(plain)} s, ${seconds(fast)} s`);
  const quiet = await say({ ...request, prosody: { volume: -20 } });
  const ratio = loudness(quiet) / loudness(plain);
  assert.ok(ratio > 0.08 && ratio < 0.12, `-20 dB are ${ratio}`);
  // MP3 at 16 kHz, the rate of the built-in voice, has no 192 kbit/s.
  for (const mp3_bitrate of [64, 128]) assert.ok(seconds(await say({ format: "mp3", mp3_bitrate })) > 0.8);
  for (const opus_bitrate of [-1000, 24, 32, 48, 64]) assert.ok(seconds(await say({ format: "opus", opus_bitrate })) > 0.8);
});

test("emoji alone are a short silence", async () => {
  const { data, rawResponse } = await convert({ text: "🎉🎉" }).withRawResponse();
  assert.ok(rawResponse.headers.get("x-shoal-warnings"));
  assertSilence(heard(await collect(data), "mp3"));
});

test("errors have the package's classes and say what was wrong", async () => {
  const thrown = (request) => convert(request).then(() => null, (error) => error);
  const field = await thrown({ format: "mp4" });
  assert.ok(field instanceof UnprocessableEntityError, String(field));
  assert.match(JSON.stringify(field.body), /format/);
  const unknown = await thrown({ reference_id: "nobody here" });
  assert.ok(unknown instanceof FishAudioError, String(unknown));
  assert.equal(unknown.statusCode, 404);
});

test("the client retries until there is a place", withServer(onePlace, async (narrow) => {
  const first = (await convert({ text: text.repeat(30) }, { which: narrow })).getReader();
  await first.read();
  const refused = await convert({}, { which: narrow }).then(() => null, (error) => error);
  assert.equal(refused?.statusCode, 429);
  const second = convert({}, { which: narrow, maxRetries: 10 });
  await until("a refusal of the second", async () =>
    (await narrow.metrics()).value("shoal_http_requests_total", { outcome: "refused" }) >= 2);
  await first.cancel();
  assert.ok(seconds(heard(await collect(await second), "mp3")) > 0.8);
}));

test("an abort ends the speech", async () => {
  const abort = new AbortController();
  const reader = (await convert({ text: text.repeat(30) }, { abortSignal: abort.signal })).getReader();
  await reader.read();
  abort.abort();
  await until("no speech", async () => (await server().speaking()) === 0);
});

test("a valid key is accepted, a wrong one refused", withServer(guardedBy("sesame"), async (guarded) => {
  const error = await convert({}, { which: guarded, apiKey: "wrong" }).then(() => null, (thrown) => thrown);
  assert.equal(error?.statusCode, 401);
  assert.ok((await say({}, { which: guarded, apiKey: "sesame" })).length > 0);
}));

// What a connection gives: sound, the error that it tells, and whether its words end it.
function conversation(connection) {
  return new Promise((resolve) => {
    const pieces = [];
    let error = null;
    connection.on(RealtimeEvents.AUDIO_CHUNK, (piece) => pieces.push(Buffer.from(piece)));
    connection.on(RealtimeEvents.ERROR, (told) => (error ??= told));
    connection.on(RealtimeEvents.CLOSE, () => resolve({ sound: Buffer.concat(pieces), error }));
  });
}
async function* words() {
  yield* ["The train ", "leaves ", "at noon. ", "Please ", "hurry."];
}
const live = async (request, { which, apiKey, textStream = words(), backend } = {}) =>
  conversation(await clientOf(which, apiKey).textToSpeech.convertRealtime({ text: "", ...request }, textStream, backend));

test("text that is still being written becomes sound: mp3 unless it says otherwise", async () => {
  const { sound, error } = await live({ seed: 3 });
  assert.equal(error, null);
  assert.ok(seconds(heard(sound, "mp3")) > 1.2);
  const pcm = { format: "pcm", sample_rate: 24000, seed: 3 };
  const whole = heard((await live(pcm)).sound, "pcm");
  assert.deepEqual(whole, heard((await live({ ...pcm, text: "The train leaves at noon. " }, { textStream: ["Please hurry."] })).sound, "pcm"));
  assert.deepEqual(heard((await live({ ...pcm, format: "wav" })).sound, "wav").length, whole.length);
});

test("a live text follows a stored voice, a recording and its prosody", async () => {
  const pcm = { format: "pcm", sample_rate: 24000, seed: 3 };
  const [nora, oscar] = await Promise.all(["nora", "oscar"].map(async (reference_id) =>
    pitch(heard((await live({ ...pcm, reference_id })).sound, "pcm"))));
  assert.ok(nora > 1.25 * oscar, `nora ${nora} Hz, oscar ${oscar} Hz`);
  const references = [{ audio: clip(3, 16000, 110), text: "Hm, hm, hm." }];
  const followed = await live({ ...pcm, references, prosody: { speed: 2 } });
  assert.equal(followed.error, null);
  assert.ok(followed.sound.length > 0);
});

test("a flush speaks what there is while the text goes on", async () => {
  let say;
  const heardFirst = new Promise((resolve) => (say = resolve));
  const textStream = (async function* () {
    yield "The train leaves";
    await heardFirst;
    yield " at noon.";
  })();
  const connection = await clientOf().textToSpeech.convertRealtime({ text: "", format: "pcm" }, textStream);
  connection.on(RealtimeEvents.AUDIO_CHUNK, () => say());
  connection.on(RealtimeEvents.OPEN, () => setTimeout(() => connection.send(new FlushEvent()), 100));
  assert.equal((await conversation(connection)).error, null);
});

test("a live connection says what is wrong, and is refused without a key", withServer(guardedBy("sesame"), async (guarded) => {
  const said = async (request, options) => (await live(request, { which: guarded, apiKey: "sesame", ...options })).error?.message;
  assert.match(await said({ format: "mp4" }), /format/);
  assert.match(await said({ reference_id: "nobody here" }), /nobody here/);
  assert.match(await said({ tempo: 2 }), /tempo/);
  assert.match(await said({}, { apiKey: "wrong" }), /401/);
  assert.equal(await said({}), undefined);
}));

test("voices are added, found, told of, changed, spoken and deleted", async () => {
  const { voices } = clientOf();
  const added = await voices.ivc.create({
    title: "A low hum", voices: [new File([clip(3, 16000, 110)], "a.wav"), new File([clip(2, 16000, 120)], "b.wav")],
    texts: ["Hm hm hm.", "Hm hm."], tags: ["hum", "low"], description: "It hums.", visibility: "private",
    enhance_audio_quality: true,
  });
  assert.match(added._id, /^[0-9a-f]{32}$/);
  assert.deepEqual([added.title, added.tags, added.state, added.visibility, added.samples.map((one) => one.text)],
    ["A low hum", ["hum", "low"], "trained", "private", ["Hm hm hm.", "Hm hm."]]);
  const found = await voices.search({ self: true, title: "LOW", tag: ["hum", "low"], sort_by: "created_at" });
  assert.deepEqual([found.total, found.items[0]._id], [1, added._id]);
  assert.equal((await voices.search({ self: true, tag: "high" })).total, 0);
  assert.deepEqual(await voices.get(added._id), added);
  assert.equal((await voices.update(added._id, { title: "A hum, a moon", tags: ["moon"] })).status, "ok");
  const { title, tags, description } = await voices.get(added._id);
  assert.deepEqual([title, tags, description], ["A hum, a moon", ["moon"], "It hums."]);
  assert.ok((await say({ reference_id: added._id, format: "wav" })).length > 0);
  assert.equal((await voices.delete(added._id)).status, "ok");
  const gone = await voices.get(added._id).then(() => null, (error) => error);
  assert.ok(gone instanceof FishAudioError && gone.statusCode === 404, String(gone));
});

test("pages of voices are the list", async () => {
  const { voices } = clientOf();
  const { total, items } = await voices.search({ page_size: 1000 });
  assert.ok(total >= 2 && items.length === total, `${total}`);
  const ids = [];
  for (let page_number = 1; ids.length < total; ++page_number) {
    const page = await voices.search({ page_size: 2, page_number });
    assert.ok(page.total === total && page.items.length > 0);
    ids.push(...page.items.map((one) => one._id));
  }
  assert.deepEqual(ids, items.map((one) => one._id));
});

test("what is wrong with a voice has the package's classes", async () => {
  const { voices } = clientOf();
  const file = new File([clip(3, 16000, 110)], "a.wav");
  const thrown = (promise) => promise.then(() => null, (error) => error);
  const noWords = await thrown(voices.ivc.create({ title: "x", voices: [file] }));
  assert.deepEqual([noWords.statusCode, /texts/.test(noWords.body.message)], [400, true]);
  const oneText = await thrown(voices.ivc.create({ title: "x", voices: [file, file], texts: ["a"] }));
  assert.ok(oneText instanceof UnprocessableEntityError, String(oneText));
  const noSound = await thrown(voices.ivc.create({ title: "x", voices: [new File(["no sound"], "a.wav")], texts: ["a"] }));
  assert.equal(noSound.statusCode, 400);
  assert.ok((await thrown(voices.search({ page_size: 0 }))) instanceof UnprocessableEntityError);
  assert.equal((await thrown(voices.delete("nobody here"))).statusCode, 404);
});

test("the account never runs dry", async () => {
  const { user } = clientOf();
  const credit = await user.get_api_credit();
  assert.ok(Number(credit.credit) > 1e9 && credit.has_phone_sha256 === false, JSON.stringify(credit));
  const { type, total, balance, finished_at } = await user.get_package();
  assert.deepEqual([type, total], ["unlimited", balance]);
  assert.ok(balance > 1e9 && new Date(finished_at) > Date.now());
});
