// Clients of Fish-Speech's own server: MessagePack, JSON and forms on /v1/tts, the codec, and their errors.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { msgpack } from "./clients.mjs";
import { sharedServer } from "./harness.mjs";
import { form } from "./http.mjs";
import { assertSpeech, clip, magic, readPcm, readWav } from "./sound.mjs";

const server = sharedServer({ before, after });
const { encode, decode } = await msgpack();
const text = "The train leaves at noon.";
const packed = { headers: { "content-type": "application/msgpack" } };
const pack = (body) => Buffer.from(encode(body));

// What the official command-line client sends, field by field.
const official = (body) => ({
  text, references: [], reference_id: null, format: "wav", max_new_tokens: 1024, chunk_length: 300, top_p: 0.8,
  repetition_penalty: 1.1, temperature: 0.8, streaming: false, use_memory_cache: "off", seed: 5, ...body,
});

async function tts(body, options) {
  const answer = await server().http.post("/v1/tts", body, options);
  assert.equal(answer.status, 200, answer.text().slice(0, 500));
  assert.ok(answer.whole);
  return answer;
}

test("MessagePack in the official client's form", async () => {
  const answer = await server().http.post("/v1/tts?format=msgpack", pack(official({})),
    { headers: { "content-type": "application/msgpack", authorization: "Bearer YOUR_API_KEY" } });
  assert.equal(answer.status, 200, answer.text().slice(0, 500));
  assert.equal(answer.type, "audio/wav");
  assert.match(answer.headers["content-disposition"], /attachment; ?filename="?audio\.wav/);
  assert.equal(Number(answer.headers["content-length"]), answer.body.length);
  const { samples, rate } = readWav(answer.body);
  assertSpeech(samples, rate);
});

test("streaming gives bare 16-bit samples under audio/wav, the same as the file has", async () => {
  const file = readWav((await tts(pack(official({})), packed)).body);
  const stream = await tts(pack(official({ streaming: true })), packed);
  assert.equal(stream.type, "audio/wav");
  assert.equal(stream.headers["transfer-encoding"], "chunked");
  assert.deepEqual(readPcm(stream.body), file.samples);
});

test("JSON, MessagePack and forms give the same sound", async () => {
  const body = { text, seed: 11, format: "pcm" };
  const json = (await tts(body)).body;
  assert.deepEqual((await tts(pack(body), packed)).body, json);
  const { body: bytes, headers } = form(body);
  assert.deepEqual((await tts(bytes, { headers })).body, json);
});

for (const [format, type] of Object.entries({
  wav: "audio/wav", pcm: "application/octet-stream", mp3: "audio/mpeg", opus: "audio/ogg", flac: "audio/flac",
})) {
  test(`speaks ${format}`, async () => {
    const answer = await tts({ text, format, seed: 5 });
    assert.equal(answer.type, type);
    assert.ok(magic[format](answer.body));
  });
}

// What /v1/tts samples with when a request does not say.
const fishDefaults = { temperature: 0.8, top_p: 0.8, repetition_penalty: 1.1 };

// Streamed equals whole, for both routes and every lossless format. Of a FLAC stream the 34 bytes of STREAMINFO may
// differ, where the length and the checksum of what was not yet made would stand.
const withoutStreamInfo = (bytes) => Buffer.concat([bytes.subarray(0, 8), bytes.subarray(42)]);
for (const format of ["wav", "pcm", "flac"]) {
  test(`${format}: streamed and whole are the same samples on both routes`, async () => {
    const speech = async (more) => {
      const answer = await server().http.post("/v1/audio/speech",
        { model: "tts-1", voice: "default", input: text, response_format: format, seed: 5, ...fishDefaults, ...more });
      assert.equal(answer.status, 200, answer.text().slice(0, 500));
      return answer.body;
    };
    const whole = (await tts({ text, format, seed: 5 })).body;
    assert.deepEqual(await speech({ stream: false, sample_rate: 16000 }), whole);
    const streams = [await speech({ sample_rate: 16000 }), ...(await streamedTts(format))];
    for (const stream of streams) {
      if (format === "flac") assert.deepEqual(withoutStreamInfo(stream), withoutStreamInfo(whole));
      else if (format === "wav") assert.deepEqual(readWav(stream, { streamed: true }).samples, readWav(whole).samples);
      else assert.deepEqual(stream, whole);
    }
  });
}

// The official server streams wav alone; here the other formats may be streamed too, or are refused by name.
async function streamedTts(format) {
  if (format === "wav") return [];
  const answer = await server().http.post("/v1/tts", { text, format, seed: 5, streaming: true });
  if (answer.status === 200) return [answer.body];
  assert.equal(answer.status, 400);
  assert.match(answer.json().message, /stream/i);
  return [];
}

test("the first piece of a stream arrives while more is being made", async () => {
  const message = await server().http.open("POST", "/v1/tts", { body: { text: text.repeat(40), streaming: true } });
  await new Promise((resolve) => message.once("data", resolve));
  assert.notEqual(await server().speaking(), 0);
  message.destroy();
});

test("inline references are followed in every kind of body", async () => {
  const audio = clip(2);
  const plain = (await tts({ text, seed: 5, format: "pcm" })).body;
  const body = { text, seed: 5, format: "pcm", references: [{ audio, text: "Hm, hm, hm." }] };
  const packedSound = (await tts(pack(body), packed)).body;
  assert.notDeepEqual(packedSound, plain, "the reference changed nothing");
  const json = { ...body, references: [{ audio: audio.toString("base64"), text: "Hm, hm, hm." }] };
  assert.deepEqual((await tts(json)).body, packedSound);
  assert.deepEqual((await tts({ ...json, use_memory_cache: "on" })).body, packedSound, "the cache changes nothing");
});

test("errors have the official form", async () => {
  for (const [body, status, options] of [
    [pack({ text: 12 }), [400, 422], packed],
    [pack(official({ format: "mp4" })), [400, 422], packed],
    [pack(official({ top_p: 7 })), [400, 422], packed],
    [pack(official({ colour: "red" })), [400, 422], packed],
    [pack(official({ reference_id: "nobody here" })), [404, 400], packed],
    ["<tts/>", [415], { headers: { "content-type": "text/xml" } }],
  ]) {
    const answer = await server().http.post("/v1/tts", body, options);
    assert.ok(status.includes(answer.status), `${answer.status}: ${answer.text()}`);
    const error = answer.json();
    assert.deepEqual(Object.keys(error).sort(), ["error", "message", "request_id", "statusCode"]);
    assert.equal(error.request_id, answer.headers["x-request-id"]);
    assert.equal(error.statusCode, answer.status);
    assert.ok(error.message.length > 5);
    if (answer.status === 415) {
      for (const type of ["application/json", "application/msgpack", "multipart/form-data"]) {
        assert.ok(answer.headers.accept?.includes(type) || error.message.includes(type), JSON.stringify(answer.headers));
      }
    }
  }
});

test("/v1/health says ok to GET and POST", async () => {
  for (const answer of [await server().http.get("/v1/health"), await server().http.post("/v1/health")]) {
    assert.equal(answer.status, 200);
    assert.equal(answer.json().status, "ok");
  }
});

test("the codec's routes: what was encoded can be heard again", async () => {
  const audio = clip(2);
  const encoded = await server().http.post("/v1/vqgan/encode", pack({ audios: [audio, clip(1)] }), packed);
  assert.equal(encoded.status, 200, encoded.text().slice(0, 300));
  const { tokens } = decode(encoded.body);
  assert.equal(tokens.length, 2);
  assert.equal(tokens[0].length, tokens[1].length, "codebooks");
  assert.ok(tokens[0].every((book) => book.length === tokens[0][0].length && book.length > tokens[1][0].length));

  const decoded = await server().http.post("/v1/vqgan/decode", pack({ tokens }), packed);
  assert.equal(decoded.status, 200, decoded.text().slice(0, 300));
  const { audios } = decode(decoded.body);
  assert.equal(audios.length, 2);
  const power = halves(audios[0]).reduce((sum, x) => sum + x * x, 0) / (audios[0].length / 2);
  assert.ok(Math.sqrt(power) > 0.005 && Math.sqrt(power) < 1, `loudness ${Math.sqrt(power)}`);
  const ratio = audios[0].length / audios[1].length;
  assert.ok(ratio > 1.8 && ratio < 2.2, `2 s and 1 s gave ${audios[0].length} and ${audios[1].length} bytes`);

  const json = await server().http.post("/v1/vqgan/encode", { audios: [audio.toString("base64")] });
  assert.equal(json.status, 200, json.text().slice(0, 300));
});

// float16, little-endian
function halves(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 2 }, (_, i) => {
    const bits = view.getUint16(2 * i, true);
    const exponent = (bits >> 10) & 31;
    const magnitude = exponent ? (1 + (bits & 1023) / 1024) * 2 ** (exponent - 15) : (bits & 1023) * 2 ** -24;
    return bits & 0x8000 ? -magnitude : magnitude;
  });
}

test("the codec refuses input that is neither sound nor codes", async () => {
  const post = (path, body) => server().http.post(path, pack(body), packed);
  for (const answer of [
    await post("/v1/vqgan/encode", { audios: [Buffer.alloc(500, 3)] }),
    await post("/v1/vqgan/encode", { audios: "x" }),
    await post("/v1/vqgan/decode", { tokens: [[[1, 2], [3]]] }),
    await post("/v1/vqgan/decode", { tokens: [[[1e9]]] }),
    await post("/v1/vqgan/decode", { tokens: [[[-1]]] }),
    await post("/v1/vqgan/decode", {}),
  ]) assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status}: ${answer.text()}`);
  await server().assertSpeaks();
});
