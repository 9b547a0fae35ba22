// The load of many clients on one server, with those that leave, those that read slowly and those that ask nonsense, on
// every route and in every format. It compares each answer with its bytes, and so does what `shoal bench serve` cannot; how
// long answers take is for that to measure.
//   SHOAL_PROGRAM=build/release/src/cli/shoal SHOAL_SERVER_CLIENTS=build/release/server_clients
//   node tests/server/load.mjs [--clients 200] [--seconds 300] [--warm-up SECONDS] [--settle SECONDS] [--seed N]
//        [--check] [--memory-limit SHARE] [--health-limit-ms MS] [-- flags of shoal serve]
// Prints JSON. A request is lost when its answer is not whole, mixed up when its bytes differ from what a quiet server
// answered before. --check: exit code 1 when one was, when memory grew by more than the limit (0.02), or when the 99th
// percentile of /health reached its limit (50 ms).
import { createHash } from "node:crypto";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { msgpack } from "./clients.mjs";
import { Server } from "./harness.mjs";
import { pollHealth } from "./health_poll.mjs";
import { Answer, collect } from "./http.mjs";
import { addVoices, bad, good } from "./load_requests.mjs";

const text = { type: "string" };
const flags = process.argv.includes("--") ? process.argv.slice(process.argv.indexOf("--") + 1) : [];
const args = process.argv.slice(2, process.argv.includes("--") ? process.argv.indexOf("--") : undefined);
const { values } = parseArgs({
  args,
  options: {
    clients: text, seconds: text, "warm-up": text, settle: text, seed: text, check: { type: "boolean" },
    "memory-limit": text, "health-limit-ms": text,
  },
});
const clients = Number(values.clients ?? 200);
const seconds = Number(values.seconds ?? 300);
const warm_up = Number(values["warm-up"] ?? 60);
const settle = Number(values.settle ?? 10);
const patience_ms = 600_000;

// Numbers in [0, 1) that are the same in each run: mulberry32.
function draws(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

class Load {
  constructor(port, expected) {
    this.port = port;
    this.expected = expected;  // [{name, path, body, headers, digest, sum}]
    this.refusals = bad();
    this.counts = { whole: 0, slow: 0, left: 0, refused: 0 };
    this.failures = [];
    this.lost = 0;
    this.mixed_up = 0;
  }

  fail(kind, entry, why) {
    ++this[kind];
    if (this.failures.length < 20) this.failures.push(`${kind}: ${entry.name}: ${why}`);
  }

  open(entry, agent) {
    let request;
    const head = new Promise((resolve, reject) => {
      request = http.request({
        host: "127.0.0.1", port: this.port, method: "POST", path: entry.path, agent, timeout: patience_ms,
        headers: { ...entry.headers, "content-length": entry.body.length },
      }, resolve);
      request.on("timeout", () => request.destroy(new Error(`nothing for ${patience_ms / 1000} s`)));
      request.on("error", reject);
      request.end(entry.body);
    });
    head.catch(() => {});
    return { request, head };
  }

  async whole(entry, agent, read = collect) {
    const answer = await read(await this.open(entry, agent).head);
    if (answer.status !== 200) return this.fail("lost", entry, `${answer.status} ${answer.text().slice(0, 200)}`);
    if (!answer.whole) return this.fail("lost", entry, `cut off after ${answer.body.length} bytes`);
    const sum = entry.digest(answer);
    if (sum !== entry.sum) this.fail("mixed_up", entry, `${sum.slice(0, 12)}, not ${entry.sum.slice(0, 12)}`);
  }

  async leave(entry, agent, draw) {
    const { request, head } = this.open(entry, agent);
    if (draw() < 0.5) {
      await sleep(draw() * 1500);  // before or while it is answered
    } else {
      const answer = await head;
      await new Promise((resolve) => answer.once("data", resolve).once("close", resolve));  // mid-stream
    }
    request.destroy();
  }

  async refuse(entry, agent) {
    const answer = await collect(await this.open(entry, agent).head);
    if (!entry.statuses.includes(answer.status)) {
      this.fail("lost", entry, `${answer.status}, not ${entry.statuses}: ${answer.text().slice(0, 200)}`);
    }
  }

  async client(index, seed, end) {
    const draw = draws(seed * 1000 + index);
    const any = (list) => list[Math.floor(draw() * list.length)];
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (Date.now() < end) {
      const kind = draw();
      const entry = kind < 0.14 ? any(this.refusals) : any(this.expected);
      try {
        if (kind < 0.14) await this.refuse(entry, agent).then(() => ++this.counts.refused);
        else if (kind < 0.28) await this.leave(entry, agent, draw).then(() => ++this.counts.left);
        else if (kind < 0.36) await this.whole(entry, agent, (m) => slowly(m, draw)).then(() => ++this.counts.slow);
        else await this.whole(entry, agent).then(() => ++this.counts.whole);
      } catch (error) {
        this.fail("lost", entry, error.message);
        await sleep(100);
      }
      if (draw() < 0.1) await sleep(draw() * 500);
    }
    agent.destroy();
  }
}

// Reads piece by piece with pauses, some of them long.
async function slowly(message, draw) {
  const chunks = [];
  try {
    for await (const chunk of message) {
      chunks.push(chunk);
      await sleep(draw() < 0.1 ? 2000 * draw() : 200 * draw());
    }
  } catch {
    // cut off: message.complete says so
  }
  return new Answer(message, Buffer.concat(chunks), chunks);
}

async function quiet(server) {
  await sleep(settle * 1000);
  const stats = await server.stats();
  return { resident_mb: server.residentBytes() / 2 ** 20, stats };
}

async function round(load, length, seed) {
  const end = Date.now() + length * 1000;
  await Promise.all(Array.from({ length: clients }, (_, i) => load.client(i, seed, end)));
}

const server = await Server.start({ flags: ["--request-timeout-s", "600", ...flags] });
const report = { clients, seconds, warm_up_s: warm_up, flags };
const resident = (name) => (report[name] = Math.round(server.residentBytes() / 2 ** 10) / 2 ** 10);
try {
  resident("resident_at_start_mb");
  await addVoices(server.http);
  const { encode } = await msgpack();
  const model = (await server.http.get("/v1/models")).json().data[0].id;
  const expected = good(encode, model);
  for (const entry of expected) {
    const answer = await server.http.post(entry.path, entry.body, { headers: entry.headers });
    if (answer.status !== 200) throw new Error(`${entry.name}: ${answer.status} ${answer.text()}`);
    entry.sum = entry.digest(answer);
  }
  report.requests_known = expected.length;
  report.catalogue_sha256 = createHash("sha256").update(expected.map((entry) => entry.sum).join()).digest("hex");

  const seed = Number(values.seed ?? 1);
  if (warm_up > 0) await round(new Load(server.port, expected), warm_up, seed + 1);
  await quiet(server);
  resident("resident_before_mb");

  const poll = pollHealth(server.port);
  const load = new Load(server.port, expected);
  await round(load, seconds, seed);
  report.health = await poll.stop();
  await quiet(server);
  resident("resident_after_mb");

  Object.assign(report, {
    requests: load.counts, lost: load.lost, mixed_up: load.mixed_up, failures: load.failures,
    memory_growth: report.resident_after_mb / report.resident_before_mb - 1,
    stats: (await server.stats()),
  });
  for (const entry of expected) {  // and a quiet server still says the same
    const answer = await server.http.post(entry.path, entry.body, { headers: entry.headers });
    if (answer.status !== 200 || entry.digest(answer) !== entry.sum) load.fail("mixed_up", entry, "afterwards");
  }
  report.mixed_up = load.mixed_up;
} finally {
  await server.stop().then(() => (report.exit_code = 0), (error) => (report.exit_code = error.message));
}
report.ok = report.lost === 0 && report.mixed_up === 0 && report.health.failures === 0 && report.exit_code === 0 &&
  report.health.p99_ms < Number(values["health-limit-ms"] ?? 50) &&
  report.memory_growth <= Number(values["memory-limit"] ?? 0.02);
console.log(JSON.stringify(report, null, 2));
if (values.check && !report.ok) process.exitCode = 1;
