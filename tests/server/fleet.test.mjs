// shoal fleet: workers that are killed, stopped and left alone by their supervisor, while people are being served.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { environment, program, slowness, until } from "./harness.mjs";
import { Http, sha256 } from "./http.mjs";

const running = new Set();
process.on("exit", () => running.forEach((fleet) => fleet.child.kill("SIGKILL")));

const listen = (port) => new Promise((resolve, reject) => {
  const server = createServer().on("error", reject).listen(port, "127.0.0.1", () => resolve(server));
});

// The first of `count` neighbouring ports that are free now. Another process may take one before the fleet does.
async function freePorts(count) {
  for (;;) {
    const servers = [await listen(0)];
    const base = servers[0].address().port;
    try {
      while (servers.length < count && base + count < 65536) servers.push(await listen(base + servers.length));
    } catch (error) {
      if (error.code !== "EADDRINUSE") throw error;
    }
    for (const server of servers) await new Promise((closed) => server.close(closed));
    if (servers.length === count) return base;
  }
}

// Whether the process exists and has not ended. A zombie has.
function isAlive(pid) {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

class Fleet {
  static async start(workers, flags = []) {
    const fleet = new Fleet();
    fleet.base = await freePorts(workers);
    fleet.launch(["--devices", "cpu", "--per-device", String(workers), "--base-port", String(fleet.base), "--grace-s", "120", ...flags]);
    fleet.http = Array.from({ length: workers }, (_, i) => new Http(fleet.base + i));
    for (let i = 0; i < workers; i++) await fleet.ready(i);
    return fleet;
  }

  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "shoal_fleet_"));
    this.log = "";
    this.code = null;
  }

  launch(flags) {
    // The processes of a worker belong to the supervisor: SIGKILL to it ends them, too.
    this.child = spawn(program, ["fleet", "--cache-dir", join(this.dir, "cache"), ...flags], { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
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
    for (const http of this.http) http.close();
    rmSync(this.dir, { recursive: true, force: true });
    await until("every worker to have ended", () => !this.allPids().some(isAlive), 10);
    return code;
  }
}

const fleetTest = (name, workers, body, flags) => test(name, { timeout: 300_000 * slowness }, async () => {
  const fleet = await Fleet.start(workers, flags);
  try {
    await body(fleet);
  } finally {
    if (fleet.code === null) assert.equal(await fleet.stop(), 0, fleet.log);
  }
});

const sentence = { text: "Good morning.", seed: 1 };
const cpusOf = (pid) => readFileSync(`/proc/${pid}/status`, "utf8").match(/^Cpus_allowed_list:\s+(\S+)/m)[1];

fleetTest("workers speak alike, on CPUs of their own, and the second starts when the first is ready", 2, async (fleet) => {
  const sums = [];
  for (const http of fleet.http) {
    const answer = await http.post("/v1/tts", sentence);
    assert.equal(answer.status, 200);
    sums.push(sha256(answer.body));
  }
  assert.equal(sums[0], sums[1]);
  assert.notEqual(cpusOf(fleet.pid(0)), cpusOf(fleet.pid(1)));
  assert.ok(fleet.log.indexOf("w1: ready") < fleet.log.indexOf("w2: started"), fleet.log);
  assert.match(fleet.log, /^w2 \| .*listening on http:\/\/127\.0\.0\.1:/m);
});

fleetTest("a worker that is killed under load is back, and the other does not notice", 2, async (fleet) => {
  const sum = sha256((await fleet.http[1].post("/v1/tts", sentence)).body);
  const stop = { now: false };
  const speakOn = async () => {
    let count = 0;
    for (; !stop.now; count++) {
      const answer = await fleet.http[1].post("/v1/tts", sentence);
      assert.equal(answer.status, 200, answer.text());
      assert.equal(sha256(answer.body), sum);
    }
    return count;
  };
  const speaking = Array.from({ length: 4 }, speakOn);
  for (let i = 1; i <= 2; i++) {
    process.kill(fleet.pid(0), "SIGKILL");
    await until("the restart", () => fleet.pids(0).length === i + 1, 20);
    await fleet.ready(0);
  }
  stop.now = true;
  for (const count of await Promise.all(speaking)) assert.ok(count > 0);
  assert.match(fleet.log, /w1: ended with signal 9 \(Killed\); restart 1 of 7 in 0\.5 s/);
  assert.match(fleet.log, /restart 2 of 7 in 1 s/);
  assert.equal(fleet.pids(1).length, 1);
});

fleetTest("a worker that is stopped is found, killed and replaced", 2, async (fleet) => {
  const stopped = fleet.pid(0);
  process.kill(stopped, "SIGSTOP");
  await until("the restart", () => fleet.pids(0).length === 2, 40);
  assert.match(fleet.log, /w1: gives no answer; it is killed/);
  assert.ok(!isAlive(stopped));
  await fleet.ready(0);
  assert.equal(fleet.pids(1).length, 1);
});

fleetTest("SIGTERM: requests inside are answered, every worker ends, and no port stays taken", 2, async (fleet) => {
  const inside = fleet.http.map((http) => http.post("/v1/tts", { text: "Every morning the fishermen went out. ".repeat(20), seed: 2 }));
  for (const http of fleet.http) await until("the request to be inside", async () => /^shoal_engine_requests\S* [1-9]/m.test((await http.get("/metrics")).text()));
  fleet.child.kill("SIGTERM");
  for (const answer of await Promise.all(inside)) assert.ok(answer.status === 200 && answer.whole);
  for (const http of fleet.http) http.close();
  assert.equal(await fleet.exited, 0, fleet.log);
  assert.ok(!fleet.allPids().some(isAlive));
  for (let i = 0; i < 2; i++) (await listen(fleet.base + i)).close();
  rmSync(fleet.dir, { recursive: true, force: true });
});

fleetTest("a supervisor that is killed takes its workers with it", 2, async (fleet) => {
  assert.equal(await fleet.stop("SIGKILL"), "SIGKILL");
  for (let i = 0; i < 2; i++) (await listen(fleet.base + i)).close();
});

test("a port that is taken is one sentence and exit code 2, and nothing runs", { timeout: 60_000 * slowness }, async () => {
  const base = await freePorts(2);
  const other = await listen(base + 1);
  const fleet = new Fleet();
  fleet.launch(["--devices", "cpu", "--per-device", "2", "--base-port", String(base)]);
  assert.equal(await fleet.exited, 2);
  assert.equal(fleet.log, `shoal: base_port: port ${base + 1} of w2 cannot be used: Address already in use\n`);
  other.close();
  rmSync(fleet.dir, { recursive: true, force: true });
});
