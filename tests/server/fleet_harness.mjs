// Starts and stops `shoal fleet`, with what its tests look at.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { environment, program, slowness, until } from "./harness.mjs";
import { Http, sha256 } from "./http.mjs";
import { freePorts } from "./ports.mjs";

const running = new Set();
process.on("exit", () => running.forEach((fleet) => fleet.child.kill("SIGKILL")));

// Whether the process exists and has not ended. A zombie has, once its other threads, which keep its ports, have ended too.
export function isAlive(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return !/^State:\s+Z/m.test(status) || Number(status.match(/^Threads:\s+(\d+)/m)?.[1]) > 1;
  } catch {
    return false;
  }
}

export class Fleet {
  static async start(workers, flags = []) {
    const fleet = new Fleet();
    fleet.base = await freePorts(workers + 1);
    const front = fleet.base + workers;
    const listen = flags.includes("--listen") ? [] : ["--listen", `127.0.0.1:${front}`];
    fleet.launch(["--devices", "cpu", "--per-device", String(workers), "--base-port", String(fleet.base), ...listen,
      "--grace-s", "120", ...flags.map((flag) => flag.replace("FRONT", front))]);
    fleet.front = new Http(front);
    fleet.http = Array.from({ length: workers }, (_, i) => new Http(fleet.base + i));
    for (let i = 0; i < workers; i++) await fleet.ready(i);
    return fleet;
  }

  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "shoal_fleet_"));
    this.log = "";
    this.code = null;
  }

  launch(flags, command = "fleet") {
    this.flags = flags;
    // The processes of a worker belong to the supervisor: SIGKILL to it ends them, too.
    this.child = spawn(program, [command, "--cache-dir", join(this.dir, "cache"), ...flags], { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.setEncoding("utf8").on("data", (text) => (this.log += text));
    this.exited = new Promise((resolve) => this.child.on("close", (code, signal) => {
      running.delete(this);
      resolve(this.code = code ?? signal);
    }));
    running.add(this);
  }

  pids(worker) {
    return [...this.log.matchAll(new RegExp(`w${worker + 1}: started, pid (\\d+)`, "g"))].map((match) => Number(match[1]));
  }
  pid(worker) { return this.pids(worker).at(-1); }
  balancerPid() { return Number(this.log.match(/balancer: started, pid (\d+)/)[1]); }
  allPids() { return this.http.flatMap((_, worker) => this.pids(worker)); }

  ready(worker) {
    return until(`worker ${worker + 1} to be ready`, async () => {
      assert.equal(this.code, null, this.log);
      return (await this.http[worker].get("/ready").catch(() => ({}))).status === 200;
    }, 60);
  }

  async stop(signal = "SIGTERM") {
    this.child.kill(signal);
    const code = await this.exited;
    for (const http of [...this.http, this.front]) http.close();
    rmSync(this.dir, { recursive: true, force: true });
    await until("every worker to have ended", () => !this.allPids().some(isAlive), 10);
    return code;
  }
}

export const unbalanced = ["--balancer", "none"];
export const fleetTest = (name, workers, body, flags = unbalanced, skip = false) => test(name, { timeout: 300_000 * slowness, skip }, async () => {
  const fleet = await Fleet.start(workers, flags);
  try {
    await body(fleet);
  } finally {
    if (fleet.code === null) assert.equal(await fleet.stop(), 0, fleet.log);
  }
});

// Behind HAProxy.
export const without = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy"].some(existsSync) ? false : "HAProxy is not installed";
export const balanced = (name, workers, body, flags = []) => fleetTest(name, workers, body, flags, without);
export const ready = (fleet) => until("the balancer to be ready", async () => (await fleet.front.get("/ready").catch(() => ({}))).status === 200);
// How often a worker was asked for /ping.
const pinged = (http) => http.get("/metrics").then((answer) => {
  const lines = answer.text().match(/^shoal_http_requests_total\{[^}]*route="\/ping"[^}]*\} \d+/gm) ?? [];
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
});
// The balancer uses this worker.
export const used = (fleet, worker) => until(`the balancer to use worker ${worker + 1}`, async () => {
  const before = await pinged(fleet.http[worker]).catch(() => NaN);
  for (let i = 0; i < 2 * fleet.http.length; i++) await fleet.front.get("/ping").catch(() => {});
  return (await pinged(fleet.http[worker]).catch(() => NaN)) > before;
}, 60);
// The balancer has seen that every worker is ready.
export const seesAll = (fleet) => Promise.all(fleet.http.map((_, worker) => used(fleet, worker)));
// So has the supervisor, which looks by itself and refuses orders that would leave nobody ready.
export const allReady = (fleet) => until("the supervisor to have seen every worker ready", async () =>
  (await fleet.front.get("/v1/workers")).json().counts.ready === fleet.http.length);
// Requests for speech that each worker has had.
export const shares = (fleet) => Promise.all(fleet.http.map(async (http) => Number((await http.get("/metrics")).text().match(/^shoal_engine_submitted_total\S* (\d+)/m)[1])));

// Speaks through the balancer until `stop.now`; every answer must be whole and right. Streams, too, unless told otherwise.
export async function speakUntil(fleet, stop, clients, kinds = "whole answers and streams") {
  const streams = kinds.endsWith("streams") ? [false, true] : [false];
  const bodies = ["Good morning.", "The train leaves at noon."].flatMap((text, seed) => streams.map((streaming) => ({ text, seed, streaming })));
  const sums = [];
  for (const body of bodies) {
    const answer = await fleet.front.post("/v1/tts", body);
    assert.equal(answer.status, 200, answer.text());
    sums.push(sha256(answer.body));
  }
  return Promise.all(Array.from({ length: clients }, async (_, index) => {
    let count = 0;
    for (; !stop.now; count++) {
      const which = (index + count) % bodies.length;
      const answer = await fleet.front.post("/v1/tts", bodies[which]);
      assert.equal(answer.status, 200, answer.text());
      assert.ok(answer.whole, `${JSON.stringify(bodies[which])}: ${answer.body.length} bytes, not whole`);
      assert.equal(sha256(answer.body), sums[which]);
    }
    return count;
  }));
}

// Exit code, standard output and error of one run.
export const once = (flags) => new Promise((resolve) => {
  const fleet = new Fleet();
  fleet.launch(flags.includes("--devices") ? flags : ["--devices", "cpu", ...flags]);
  fleet.exited.then((code) => {
    rmSync(fleet.dir, { recursive: true, force: true });
    resolve({ code, log: fleet.log });
  });
});
