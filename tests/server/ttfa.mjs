// Time to first audio through HTTP, as `shoal bench serve` measures it, beside what the engine counts for the same
// requests: the difference is what the server, the loopback and the load program add.
//   node tests/server/ttfa.mjs [--concurrency 1,16] [--requests 64] [--limit-ms 3] [--check]   (variables: load.mjs)
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { environment, program, Server } from "./harness.mjs";

const text = { type: "string" };
const { values } = parseArgs({
  options: { concurrency: text, requests: text, "limit-ms": text, check: { type: "boolean" } },
});
const levels = (values.concurrency ?? "1,16").split(",").map(Number);
const requests = Number(values.requests ?? 64);
const limit_ms = Number(values["limit-ms"] ?? 3);
const round = (ms) => Math.round(ms * 100) / 100;

const texts = ["Good morning.", "The train leaves at noon.", "Two and two make four.", "She sells sea shells."];

// Milliseconds from `count` requests, the trial included, to their first sound: their sum, and the median of a level.
function load(server, concurrency, count, name) {
  const folder = join(server.dir, name);
  execFileSync(program, ["bench", "serve", server.url, "--texts", join(server.dir, "texts"), "--voice", "default", "--format", "pcm",
    "--speech-seed", "1", "--warm-up", "0", "--concurrency", concurrency, "--requests", count - 1, "--output", folder],
  { env: environment(), stdio: "pipe" });
  const json = (file) => JSON.parse(readFileSync(join(folder, file)));
  const { first_sound_ms: first, requests: { completed } } = json("summary.json").levels[0];
  if (completed !== count - 1) throw new Error(`${completed} of ${count - 1} requests were answered`);
  return { sum_ms: first.mean * completed + json("run.json").trial.first_sound_ms, p50_ms: first.p50 };
}

async function measure(server, concurrency) {
  load(server, concurrency, 2 * concurrency + 1, `warm_up_${concurrency}`);
  const before = await server.metrics();
  const { sum_ms, p50_ms } = load(server, concurrency, requests, `level_${concurrency}`);
  const after = await server.metrics();
  const mean = (name) => {
    const count = after.value(`${name}_count`) - before.value(`${name}_count`);
    if (count !== requests) throw new Error(`${name} counted ${count} of ${requests} requests`);
    return ((after.value(`${name}_sum`) - before.value(`${name}_sum`)) / count) * 1000;
  };
  const client_ms = sum_ms / requests;
  const engine_ms = mean("shoal_first_audio_seconds");
  return {
    concurrency, requests, engine_mean_ms: round(engine_ms), server_mean_ms: round(mean("shoal_http_first_audio_seconds")),
    client_mean_ms: round(client_ms), client_p50_ms: round(p50_ms), added_ms: round(client_ms - engine_ms),
    ok: client_ms - engine_ms < limit_ms,
  };
}

const server = await Server.start();
const report = { limit_ms, levels: [] };
try {
  writeFileSync(join(server.dir, "texts"), texts.join("\n"));
  for (const concurrency of levels) report.levels.push(await measure(server, concurrency));
} finally {
  await server.stop();
}
report.ok = report.levels.every((each) => each.ok);
console.log(JSON.stringify(report, null, 2));
if (values.check && !report.ok) process.exitCode = 1;
