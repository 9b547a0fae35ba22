// One worker on all CPUs against several on disjoint ones, and strategies against each other, with 50 voices.
//   SHOAL_PROGRAM=build/release/src/cli/shoal node tests/server/fleet_compare.mjs
//        [--workers 2] [--voices 50] [--users 8,1] [--seconds 20] [--rounds 3] [--kept 100,30] [-- flags of shoal fleet]
// `shoal bench serve` asks for the voices in turn, round after round in each fleet, so that all see the same machine. --kept: how many
// voices a worker keeps the prefix of (kv_cache_size). Prints a table: medians of the rounds.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Metrics } from "./exposition.mjs";
import { Fleet, seesAll } from "./fleet_harness.mjs";
import { environment, program } from "./harness.mjs";
import { form } from "./http.mjs";
import { clip } from "./sound.mjs";

const split = process.argv.includes("--") ? process.argv.indexOf("--") : process.argv.length;
const { values } = parseArgs({ args: process.argv.slice(2, split), options: Object.fromEntries(["workers", "voices", "users", "seconds", "rounds", "kept"].map((name) => [name, { type: "string" }])) });
const list = (name, usual) => (values[name] ?? usual).split(",").map(Number);
const [workers, voiceCount, seconds, rounds] = [["workers", "2"], ["voices", "50"], ["seconds", "20"], ["rounds", "3"]].map(([name, usual]) => list(name, usual)[0]);
const users = list("users", "8,1"), kept = list("kept", "100,30");
const further = process.argv.slice(split + 1);

const dir = mkdtempSync(join(tmpdir(), "shoal_compare_"));
process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
const references = join(dir, "references");
mkdirSync(references);
const voices = Array.from({ length: voiceCount }, (_, i) => `v${i}`);

async function addVoices(http) {
  for (const [i, id] of voices.entries()) {
    const { body, headers } = form({ id, text: "A low hum, and nothing else.", audio: { name: "voice.wav", type: "audio/wav", data: clip(2, 16000, 90 + 4 * i) } });
    const answer = await http.post("/v1/references/add?format=json", body, { headers });
    if (answer.status !== 200) throw new Error(answer.text());
  }
}

// Columns of prompts that all workers have looked up.
async function columns(fleet) {
  const sum = { hit: 0, miss: 0 };
  for (const http of fleet.http) {
    const metrics = new Metrics((await http.get("/metrics")).text());
    for (const result of Object.keys(sum)) sum[result] += metrics.value("shoal_prefix_cache_columns_total", { result });
  }
  return sum;
}

let runs = 0;
// The first load of a fleet has a warm-up in which each worker meets each voice, if it gets it.
async function measured(fleet, count, isFirst) {
  const output = join(dir, `run${++runs}`);
  const before = await columns(fleet);
  execFileSync(program, ["bench", "serve", `http://127.0.0.1:${fleet.front.port}/v1/tts`, "--voice", voices.join(","), "--texts", "short", "--concurrency", String(count),
    "--duration", String(seconds), ...(isFirst ? ["--warm-up", String(2 * voiceCount)] : []), "--field", "streaming=true", "--seed", String(runs), "--output", output], { env: environment(), stdio: "pipe" });
  const after = await columns(fleet);
  const [level] = JSON.parse(readFileSync(join(output, "summary.json"), "utf8")).levels;
  const [hit, miss] = [after.hit - before.hit, after.miss - before.miss];
  return { level, hit_share: hit / (hit + miss) };
}

const fleets = kept.flatMap((size) => [["one worker, all CPUs", 1, "least-connections"], ["least connections", workers, "least-connections"], ["voice", workers, "voice"]]
  .map(([name, count, strategy]) => ({ name, count, size, strategy, results: users.map(() => []) })));
for (let round = 0; round < rounds; ++round) {
  for (const entry of fleets) {
    const fleet = await Fleet.start(entry.count, ["--references-dir", references, "--strategy", entry.strategy, "--kv-cache-size", String(entry.size), ...further]);
    if (runs === 0) await addVoices(fleet.http[0]);
    await seesAll(fleet);
    for (const [at, count] of users.entries()) entry.results[at].push(await measured(fleet, count, at === 0));
    if ((await fleet.stop()) !== 0) throw new Error(fleet.log);
    console.error(`round ${round + 1}: ${entry.name}, ${entry.size} kept: done`);
  }
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
console.log("| | voices kept | users | requests a second | first audible sound p50, p95 (ms) | prompt columns found | failed |\n| --- | --- | --- | --- | --- | --- | --- |");
for (const entry of fleets)
  for (const [at, results] of entry.results.entries()) {
    const of = (look) => median(results.map(look));
    console.log(`| ${entry.count > 1 ? `${entry.count} workers, ` : ""}${entry.name} | ${entry.size} | ${users[at]} | ${of(({ level }) => level.requests_per_s).toFixed(2)} | ` +
      `${of(({ level }) => level.first_audible_ms.p50).toFixed(0)}, ${of(({ level }) => level.first_audible_ms.p95).toFixed(0)} | ${(100 * of(({ hit_share }) => hit_share)).toFixed(0)} % | ` +
      `${results.reduce((sum, { level }) => sum + level.requests.failed, 0)} |`);
  }
