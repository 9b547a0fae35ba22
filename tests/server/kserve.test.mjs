// The open inference protocol over HTTP, as KServe's checks and Triton's clients use it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer, Server, until } from "./harness.mjs";
import { sha256 } from "./http.mjs";

const server = sharedServer({ before, after });
const base = "/v2/models/shoal";
const post = (tail, body, options) => server().http.post(`${base}${tail}`, body, options);
const parameters = { seed: 5, max_new_tokens: 24 };

// A request with its text behind the JSON, as tritonclient writes it.
function binary(text, { outputs, more = {} } = {}) {
  const bytes = Buffer.from(text);
  const element = Buffer.alloc(4 + bytes.length);
  element.writeUInt32LE(bytes.length);
  bytes.copy(element, 4);
  const json = Buffer.from(JSON.stringify({
    inputs: [{ name: "text_input", shape: [1], datatype: "BYTES", parameters: { binary_data_size: element.length } }], outputs, parameters: { ...parameters, ...more },
  }));
  return [Buffer.concat([json, element]), { headers: { "content-type": "application/octet-stream", "inference-header-content-length": String(json.length) } }];
}

// The tensors of an answer, with the bytes that each has behind the JSON.
function tensorsOf(answer) {
  assert.equal(answer.status, 200, answer.text().slice(0, 300));
  const length = Number(answer.headers["inference-header-content-length"] ?? answer.body.length);
  let at = length;
  return JSON.parse(answer.body.subarray(0, length)).outputs.map((output) => {
    const size = output.parameters?.binary_data_size;
    const bytes = size === undefined ? undefined : answer.body.subarray(at, (at += size));
    return { ...output, bytes };
  });
}

test("a check sees a server load, be ready and drain", async () => {
  const young = await Server.start({ ready: false });
  try {
    assert.equal((await young.http.get("/v2/health/live")).status, 200);
    const seen = new Set();
    await until("ready", async () => {
      const { status } = await young.http.get("/v2/health/ready");
      seen.add(status);
      return status === 200;
    }, 120);
    for (const status of seen) assert.ok([200, 503].includes(status));
    assert.deepEqual((await young.http.get(`${base}/ready`)).json(), { name: "shoal", ready: true });
  } finally {
    await young.stop();
  }
});

test("metadata names extensions and tensors", async () => {
  const { name, extensions } = (await server().http.get("/v2")).json();
  assert.equal(name, "shoal");
  assert.ok(["binary_tensor_data", "generate"].every((extension) => extensions.includes(extension)));
  const metadata = (await server().http.get(base)).json();
  const config = (await server().http.get(`${base}/config`)).json();
  for (const [list, other] of [["inputs", "input"], ["outputs", "output"]]) assert.deepEqual(metadata[list].map((one) => one.name), config[other].map((one) => one.name));
  assert.deepEqual(config.input.filter((one) => !one.optional).map((one) => one.name), ["text_input"]);
});

test("bytes in, bytes out: the samples of /v1/audio/speech", async () => {
  const [body, options] = binary("Good morning.", { more: { binary_data_output: true } });
  const [audio, rate] = tensorsOf(await post("/infer", body, options));
  assert.deepEqual([audio.datatype, rate.datatype], ["FP32", "INT32"]);
  assert.equal(audio.bytes.length, 4 * audio.shape[0]);
  const hz = rate.bytes.readInt32LE();
  const spoken = await server().http.post("/v1/audio/speech", {
    model: "shoal", voice: "default", input: "Good morning.", response_format: "pcm", sample_rate: hz, ...parameters });
  assert.equal(spoken.body.length, 2 * audio.shape[0]);
  for (let i = 0; i < audio.shape[0]; ++i) assert.ok(Math.abs(audio.bytes.readFloatLE(4 * i) * 32768 - spoken.body.readInt16LE(2 * i)) <= 1.01, `sample ${i}`);
});

test("a load generator's calls at once are each answered, equal ones equally", async () => {
  const answers = await Promise.all([...Array(12)].map((_, i) => post("/infer", ...binary(i % 2 ? "One." : "Two.", { outputs: [{ name: "audio", parameters: { binary_data: true } }] }))));
  const sums = answers.map((answer) => sha256(tensorsOf(answer)[0].bytes));
  assert.equal(new Set(sums).size, 2);
  assert.ok(sums.every((sum, i) => sum === sums[i % 2]));
});

test("errors have the protocol's form", async () => {
  for (const [path, body, status] of [[`${base}/infer`, "{", 400], [`${base}/infer`, {}, 400], ["/v2/models/none/generate", { text_input: "a" }, 404],
    [`${base}/versions/9/infer`, { inputs: [] }, 405], [`${base}/generate`, { text_input: "a", voice: "nobody" }, 400], ["/v2/nothing", {}, 404]]) {
    const answer = await server().http.post(path, body);
    assert.equal(answer.status, status, answer.text());
    assert.deepEqual(Object.keys(answer.json()), ["error"]);
  }
  const [body] = binary("a");
  for (const length of ["x", "-1", String(body.length + 1), "1"]) {
    assert.equal((await post("/infer", body, { headers: { "inference-header-content-length": length } })).status, 400);
  }
  await server().assertSpeaks();
});

test("a client that leaves cancels", async () => {
  const message = await server().http.open("POST", `${base}/generate_stream`, { body: { text_input: "A long text. ".repeat(60), seed: 1 } });
  await new Promise((resolve) => message.once("data", resolve));
  message.destroy();
  await server().assertSpeaks();
});
