// `shoal bench serve` at a server of ours.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Metrics } from "./exposition.mjs";
import { environment, program, sharedServer } from "./harness.mjs";
import { clip } from "./sound.mjs";

const key = "a-key-for-the-bench";
const server = sharedServer({ before, after }, { flags: ["--api-key", key] });
const folder = mkdtempSync(join(tmpdir(), "shoal_bench_"));
after(() => rmSync(folder, { recursive: true, force: true }));

function bench(args, env = { SHOAL_BENCH_API_KEY: key }) {
  return new Promise((resolve) => {
    execFile(program, ["bench", "serve", ...args], { env: environment(env), cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}
const json = (...names) => JSON.parse(readFileSync(join(folder, ...names)));
const requests = (run) => readFileSync(join(folder, run, "requests.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
const usual = ["--texts", "short", "--voice", "default", "--speech-seed", "5", "--warm-up", "0", "--requests", "6"];

test("two runs with the same seeds hear the same, alone and together", async () => {
  const one = await bench([server().url, ...usual, "--concurrency", "1", "--output", "one"]);
  assert.equal(one.code, 0, one.stderr);
  const three = await bench([server().url, ...usual, "--concurrency", "3", "--format", "wav", "--output", "three"]);
  assert.equal(three.code, 0, three.stderr);
  const sums = (run) => requests(run).sort((a, b) => a.index - b.index).map((request) => request.sum);
  assert.equal(sums("one").length, 6);
  assert.deepEqual(sums("one"), sums("three"));
  const [level] = json("three", "summary.json").levels;
  assert.equal(level.requests.completed, 6);
  assert.equal(level.requests.failed, 0);
  assert.ok(level.first_audible_ms.p50 >= level.first_sound_ms.p50);
  const run = json("one", "run.json");
  assert.equal(run.outcome, "completed");
  assert.ok(!JSON.stringify(run).includes(key));
});

test("Fish's route sends PCM with its rate in the head, and users leave", async () => {
  const done = await bench([`${server().url}/v1/tts`, ...usual, "--rate", "20", "--format", "pcm", "--cancel", "50%", "--output", "fish"]);
  assert.equal(done.code, 0, done.stderr);
  const [level] = json("fish", "summary.json").levels;
  assert.ok(level.requests.left > 0);
  assert.equal(level.requests.completed + level.requests.left, 6);
});

test("a streamed wav of Fish's route has no header", async () => {
  const done = await bench([`${server().url}/v1/tts`, ...usual, "--concurrency", "2", "--output", "bare"]);
  assert.equal(done.code, 0, done.stderr);
  assert.equal(json("bare", "summary.json").levels[0].requests.completed, 6);
});

test("a sweep ends and says what it found", async () => {
  const flags = [...usual.slice(0, -2), "--sweep", "--rate", "8", "--duration", "0.5"];
  const none = await bench([server().url, ...flags, "--slo", "latency_ms=0", "--output", "none"]);
  assert.equal(none.code, 0, none.stderr);
  assert.match(none.stdout, /no rate that was tried lets 95 % of the requests keep latency_ms=0/);
  const { sweep, levels } = json("none", "summary.json");
  assert.deepEqual(levels.map((level) => level.rate_per_s), [8, 4, 2, 1]);
  assert.equal(sweep.capacity_per_s, 0);
});

test("promises are judged", async () => {
  const judged = await bench([server().url, ...usual, "--concurrency", "1", "--check", "--output", "judged"]);
  const { promises } = json("judged", "summary.json");
  assert.ok(promises.length >= 2);
  assert.equal(judged.code, promises.every((promise) => promise.kept) ? 0 : 1, judged.stderr);
});

test("two servers stand side by side", async () => {
  const both = await bench(["--compare", "--single-endpoint", server().url, "--multi-endpoint", `${server().url}/v1/tts`,
    ...usual, "--concurrency", "1,2", "--output", "both"]);
  assert.equal(both.code, 0, both.stderr);
  for (const name of ["single", "multi"]) assert.equal(json("both", name, "summary.json").levels.length, 2);
  assert.match(both.stdout, /requests\/s +then +times/);
});

test("what is wrong is said in one sentence", async () => {
  const refused = await bench([server().url, ...usual, "--output", "refused"], {});
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^shoal: http:\S+: status 401: .*\n$/);
  assert.equal(json("refused", "run.json").outcome, "failed");
  assert.match(json("refused", "run.json").error, /status 401/);
  const again = await bench([server().url, ...usual, "--output", "refused"]);
  assert.equal(again.code, 2);
  assert.match(again.stderr, /holds something already/);
});

test("a batch is heard item by item, and each item sounds as alone", async () => {
  const alone = await bench([`${server().url}/v1/tts`, ...usual, "--concurrency", "1", "--keep-audio", "--output", "singly"]);
  assert.equal(alone.code, 0, alone.stderr);
  const batch = await bench([`${server().url}/v1/tts/batch`, ...usual.slice(0, -1), "1", "--concurrency", "1", "--items", "3", "--keep-audio", "--output", "batch"]);
  assert.equal(batch.code, 0, batch.stderr);
  assert.equal(json("batch", "run.json").api, "batch");
  const samples = (run, { audio }) => readFileSync(join(folder, run, audio)).subarray(44);
  const said = new Map(requests("singly").map((request) => [request.texts[0], samples("singly", request)]));
  for (const request of requests("batch")) {
    assert.equal(request.pieces, 3);
    assert.equal(request.texts.length, 3);
    const sound = samples("batch", request);
    const parts = request.texts.map((text) => said.get(text));
    assert.ok(parts.every((part) => part && sound.includes(part)), request.texts);
    assert.equal(sound.length, parts.reduce((sum, part) => sum + part.length, 0));
  }
});

test("the WebSocket says what the others say, one utterance after the other on a connection", async () => {
  const flags = [...usual, "--format", "pcm", "--concurrency", "2"];
  const live = await bench([`${server().url}/v1/audio/stream`, ...flags, "--output", "live"]);
  assert.equal(live.code, 0, live.stderr);
  const again = await bench([server().url.replace("http", "ws"), ...flags, "--output", "live_again"]);
  assert.equal(again.code, 0, again.stderr);
  const sums = (run) => requests(run).sort((a, b) => a.index - b.index).map((request) => request.sum);
  assert.equal(new Set(sums("live")).size, 6);
  assert.deepEqual(sums("live"), sums("live_again"));
  assert.ok(requests("live").filter((request) => request.connect_ms === null).length >= 4);
  const refused = await bench([`${server().url}/v1/audio/stream`, ...usual, "--output", "live_refused"], {});
  assert.match(refused.stderr, /: status 401: /);
  const unknown = await bench([`${server().url}/v1/audio/stream`, "--requests", "1", "--voice", "nobody", "--output", "live_unknown"]);
  assert.match(unknown.stderr, /the server says: .*nobody/);
});

test("users leave, and every clip that they want followed is new", async () => {
  writeFileSync(join(folder, "clip.wav"), clip(2, 16000, 150));
  writeFileSync(join(folder, "clip.lab"), "A low hum, and nothing else.\n");
  const encoded = async () => {
    const answer = await server().http.get("/metrics", { headers: { authorization: `Bearer ${key}` } });
    return new Metrics(answer.text()).value("shoal_reference_clips_total", { source: "encoded" });
  };
  const flags = ["--texts", "short", "--warm-up", "0", "--requests", "5", "--concurrency", "2", "--cancel", "30%",
    "--reference", join(folder, "clip.wav"), "--fresh-references", "request"];
  for (const [name, path] of [["openai", ""], ["fish", "/v1/tts"], ["live", "/v1/audio/stream"]]) {
    const before = await encoded();
    const done = await bench([server().url + path, ...flags, "--output", `fresh_${name}`]);
    assert.equal(done.code, 0, done.stderr);
    assert.equal(json(`fresh_${name}`, "summary.json").levels[0].requests.failed, 0);
    assert.equal(await encoded(), before + 6, "with the trial");
    assert.equal(json(`fresh_${name}`, "run.json").speech.references.fresh, "request");
  }
  const both = await bench([`${server().url}/v1/tts`, ...flags, "--voice", "clara", "--output", "fresh_both"]);
  assert.equal(both.code, 2, both.stderr);
});

test("the sound is kept as files", async () => {
  const kept = await bench([`${server().url}/v1/tts`, ...usual, "--concurrency", "2", "--output", "kept", "--keep-audio"]);
  assert.equal(kept.code, 0, kept.stderr);
  for (const request of requests("kept")) {
    const file = readFileSync(join(folder, "kept", request.audio));
    assert.equal(request.audio, `audio/0-${request.index}.wav`);
    assert.equal(file.readUInt32LE(24), request.rate_hz);
    assert.equal(file.length, 44 + 2 * Math.round(request.sound_s * request.rate_hz));
    assert.equal(request.texts.length, 1);
  }
});
