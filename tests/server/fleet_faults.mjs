// A fleet under load whose workers are killed and stopped all the time: nothing may be lost, doubled or wrong.
//   SHOAL_PROGRAM=build/release/src/cli/shoal node tests/server/fleet_faults.mjs
//        [--workers 3] [--clients 60] [--minutes 10] [--every SECONDS] [--within SECONDS] [--requests N] [-- flags of shoal fleet]
// Every 10 s (--every) one worker is killed (SIGKILL), and half way between another is stopped (SIGSTOP), in turn. Then
// a rolling restart and a rolling reload under the same load; then the supervisor is killed, and a new one starts at the
// same ports. Prints a table and JSON; exit code 1 when a promise is broken.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Load, requests } from "./fleet_faults_load.mjs";
import { brokenPromises, digest, leaksNone, summary, table } from "./fleet_faults_report.mjs";
import { Fleet, isAlive, ready, used, without } from "./fleet_harness.mjs";
import { slowness, until } from "./harness.mjs";
import { sha256 } from "./http.mjs";
import { listen } from "./ports.mjs";

const split = process.argv.includes("--") ? process.argv.indexOf("--") : process.argv.length;
const { values } = parseArgs({
  args: process.argv.slice(2, split),
  options: Object.fromEntries(["workers", "clients", "minutes", "every", "within", "requests"].map((name) => [name, { type: "string" }])),
});
const number = (name, usual) => Number(values[name] ?? usual);
const plan = {
  workers: number("workers", 3), clients: number("clients", 60), minutes: number("minutes", 10), every_s: number("every", 10),
  within_s: number("within", 5) * slowness, requests: number("requests", 48), flags: process.argv.slice(split + 1),
};
const patience_ms = 60_000 * slowness;
const orders = { headers: { authorization: "Bearer boss" } };

if (without) {
  console.log(`skipped: ${without}`);
  process.exit(77);
}
const flags = ["--admin-key", "boss", "--log-level", "info", ...plan.flags];
const fleet = await Fleet.start(plan.workers, flags);
await ready(fleet);

// What each answer must be: from one worker that nobody else asks.
const known = requests(plan.requests);
for (const entry of known) {
  const answer = await fleet.http[0].post(entry.path, entry.body, { headers: { "content-type": "application/json" } });
  if (answer.status !== 200 || !answer.whole) throw new Error(`${entry.body}: ${answer.status} ${answer.text().slice(0, 200)}`);
  entry.sum = sha256(answer.body);
}

// What happens while `harm` does its work.
async function underLoad(harm) {
  const load = new Load(fleet.front.port, known, patience_ms);
  load.begin(plan.clients);
  const began_ms = performance.now();
  try {
    const result = await harm();
    return { load, result, seconds: (performance.now() - began_ms) / 1000 };
  } finally {
    await load.over();
  }
}

// Resident memory and descriptors of the supervisor and the balancer.
const footprint = (pid) => ({
  resident_kb: Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/^VmRSS:\s+(\d+)/m)[1]),
  descriptors: readdirSync(`/proc/${pid}/fd`).length,
});

// Descriptors without load; `before`: at most so many more than these, if that comes about in time. Under load requests
// and the connections that the balancer keeps for the next ones are descriptors, too.
async function atRest(before = null) {
  const now = () => ({ supervisor: footprint(fleet.child.pid).descriptors, balancer: footprint(fleet.balancerPid()).descriptors });
  const end = performance.now() + 30_000 * slowness;
  while (before && !leaksNone({ before, after: now() }) && performance.now() < end) await sleep(500);
  return now();
}

// From the signal until another process of this worker is ready; ends when the balancer, too, has found that out.
async function harmed(worker, signal) {
  const pid = fleet.pid(worker);
  const began_ms = performance.now();
  process.kill(pid, signal);
  const isReady = () => fetch(`http://127.0.0.1:${fleet.base + worker}/ready`, { signal: AbortSignal.timeout(1000) }).then((answer) => answer.ok, () => false);
  await until(`${signal} to have an end`, () => !isAlive(pid), 60);
  await until(`worker ${worker + 1} after ${signal}`, isReady, 60);
  const recovered_ms = performance.now() - began_ms;
  await used(fleet, worker);
  return { worker: `w${worker + 1}`, signal, began_ms, recovered_ms };
}

async function faults() {
  const harms = [], samples = [], away = new Set();
  const sampling = setInterval(() => samples.push({ supervisor: footprint(fleet.child.pid), balancer: footprint(fleet.balancerPid()) }), 1000);
  const end = performance.now() + plan.minutes * 60_000;
  for (let step = 0; performance.now() < end; ++step) {
    // One worker is left to those who ask, however slow the machine is.
    while (away.size >= Math.max(1, plan.workers - 1)) await Promise.race(away);
    const at = performance.now();
    // A kill at each whole step, a stop at each half: of the worker that has been well for longest.
    const turn = step >> 1;
    const [worker, signal] = step % 2 === 0 ? [turn, "SIGKILL"] : [turn + 2, "SIGSTOP"];
    const harm = harmed(worker % plan.workers, signal);
    harms.push(harm);
    away.add(harm);
    harm.finally(() => away.delete(harm)).catch(() => {});
    await sleep(Math.max(0, at + plan.every_s * 500 - performance.now()));
  }
  clearInterval(sampling);
  return digest(await Promise.all(harms), samples);
}

const rolled = async (what, body) => {
  const answer = await fleet.front.post(`/v1/admin/${what}`, body, orders);
  if (answer.status !== 202) throw new Error(`${what}: ${answer.status} ${answer.text()}`);
  return until(`the ${what} to end`, async () => {
    const { rolling } = (await fleet.front.get("/v1/workers")).json();
    if (rolling.what === "rollback") throw new Error(`the ${what} was taken back`);
    return rolling.what === what && rolling.outcome !== "under way" && rolling;
  }, 300);
};

// Killed with everything inside: nothing may stay, and a new one starts at the same ports.
async function supervisorKilled() {
  const pids = [...fleet.http.map((_, worker) => fleet.pid(worker)), fleet.balancerPid()];
  const began_ms = performance.now();
  process.kill(fleet.child.pid, "SIGKILL");
  await until("workers and balancer to end", () => !pids.some(isAlive), 20);
  // The main thread of a process may have ended before those that hold its sockets.
  for (let port = fleet.base; port <= fleet.base + plan.workers; ++port)
    await until(`port ${port} to be free`, () => listen(port).then((server) => server.close(), () => false));
  return performance.now() - began_ms;
}

async function startedAgain() {
  const next = new Fleet();
  Object.assign(next, { base: fleet.base, http: fleet.http, front: fleet.front });
  next.launch(fleet.flags);
  for (let worker = 0; worker < plan.workers; ++worker) await next.ready(worker);
  await ready(next);
  const answer = await next.front.post(known[0].path, known[0].body, { headers: { "content-type": "application/json" } });
  if (sha256(answer.body) !== known[0].sum) throw new Error("the new fleet speaks otherwise");
  const code = await next.stop();
  if (code !== 0) throw new Error(`the new fleet ended with ${code}: ${next.log.slice(-2000)}`);
}

// Without requests, which are nearly all of it.
const tidings = () => fleet.log.split("\n").filter((line) => !/ info +(GET|POST) /.test(line)).join("\n");
const showTidings = () => console.error(`The fleet's log ended with:\n${tidings().slice(-8000)}`);
process.on("uncaughtExceptionMonitor", showTidings);

const report = { plan, phases: {} };
async function phase(name, harm) {
  console.error(`${name} ...`);
  const { load, result, seconds } = await underLoad(harm);
  report.phases[name] = { ...summary(load, seconds), ...result };
}
const before = await atRest();
await phase("faults", faults);
report.at_rest = { before, after: await atRest(before) };
await phase("rolling restart", async () => ({ rolling: await rolled("restart") }));
await phase("rolling reload", async () => ({ rolling: await rolled("reload", { max_queue: 200 }) }));
await phase("supervisor killed", async () => {
  await sleep(2000);
  return { ended_ms: await supervisorKilled() };
});
await startedAgain();

report.broken_promises = brokenPromises(report);
console.log(table(report));
console.log(JSON.stringify(report));
if (report.broken_promises.length > 0) {
  console.log(`Broken promises:\n${report.broken_promises.map((promise) => `- ${promise}`).join("\n")}`);
  showTidings();
  process.exitCode = 1;
}
