// Time to first audio through HTTP, beside what the engine counts for the same requests: the difference is what the
// server, the loopback and this client add.
//   node tests/server/ttfa.mjs [--concurrency 1,16] [--requests 64] [--limit-ms 3] [--check]   (variables: load.mjs)
import http from "node:http";
import { parseArgs } from "node:util";
import { Metrics } from "./exposition.mjs";
import { Server } from "./harness.mjs";

const text = { type: "string" };
const { values } = parseArgs({
  options: { concurrency: text, requests: text, "limit-ms": text, check: { type: "boolean" } },
});
const levels = (values.concurrency ?? "1,16").split(",").map(Number);
const limit_ms = Number(values["limit-ms"] ?? 3);
const round = (ms) => Math.round(ms * 100) / 100;

const texts = ["Good morning.", "The train leaves at noon.", "Two and two make four.", "She sells sea shells."];

// Milliseconds from the request's last byte to the first byte of sound.
function speak(port, agent, seed) {
  const body = JSON.stringify({
    model: "shoal", voice: "default", input: texts[seed % texts.length], response_format: "pcm", seed,
  });
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: "127.0.0.1", port, method: "POST", path: "/v1/audio/speech", agent,
      headers: { "content-type": "application/json", "content-length": body.length },
    }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`status ${answer.statusCode}`));
      let first;
      answer.on("data", () => (first ??= performance.now() - began));
      answer.on("end", () => resolve(first));
      answer.on("error", reject);
    });
    request.on("error", reject);
    const began = performance.now();
    request.end(body);
  });
}

async function level(server, concurrency, requests, seed) {
  const agent = new http.Agent({ keepAlive: true });
  const times = [];
  let next = seed;
  await Promise.all(Array.from({ length: concurrency }, async () => {
    while (next < seed + requests) times.push(await speak(server.port, agent, next++));
  }));
  agent.destroy();
  return times.sort((a, b) => a - b);
}

const metrics = async (server) => new Metrics((await server.http.get("/metrics")).text());

async function measure(server, concurrency, seed) {
  const requests = Number(values.requests ?? 64);
  await level(server, concurrency, 2 * concurrency, seed);
  const before = await metrics(server);
  const times = await level(server, concurrency, requests, seed + 1000);
  const after = await metrics(server);
  const mean = (name) => {
    const count = after.value(`${name}_count`) - before.value(`${name}_count`);
    if (count !== requests) throw new Error(`${name} counted ${count} of ${requests} requests`);
    return ((after.value(`${name}_sum`) - before.value(`${name}_sum`)) / count) * 1000;
  };
  const client_ms = times.reduce((sum, ms) => sum + ms, 0) / times.length;
  const engine_ms = mean("shoal_first_audio_seconds");
  return {
    concurrency, requests, engine_mean_ms: round(engine_ms), server_mean_ms: round(mean("shoal_http_first_audio_seconds")),
    client_mean_ms: round(client_ms), client_p50_ms: round(times[times.length >> 1]),
    added_ms: round(client_ms - engine_ms), ok: client_ms - engine_ms < limit_ms,
  };
}

const server = await Server.start();
const report = { limit_ms, levels: [] };
try {
  for (const [i, concurrency] of levels.entries()) report.levels.push(await measure(server, concurrency, 10_000 * i));
} finally {
  await server.stop();
}
report.ok = report.levels.every((each) => each.ok);
console.log(JSON.stringify(report, null, 2));
if (values.check && !report.ok) process.exitCode = 1;
