// Starts and stops `shoal serve`, each time with folders and a port of its own.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { Metrics } from "./exposition.mjs";
import { Http, sha256 } from "./http.mjs";

export const program = process.env.SHOAL_PROGRAM;
// Waits are this many times longer: builds with sanitizers.
export const slowness = Number(process.env.SHOAL_TEST_SLOWNESS ?? 1);
export const sanitized = slowness > 1;
// Clients keep their connections while they wait for something else, and requests have as much more time.
const patience = { SHOAL_IDLE_TIMEOUT_S: String(75 * slowness), SHOAL_REQUEST_TIMEOUT_S: String(60 * slowness) };

// No server outlives its test: it is killed when this process ends, however that happens, and this process ends.
const running = new Set();
process.on("exit", () => running.forEach((server) => server.child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const longest_s = 1200;
setTimeout(() => {
  console.error(`not done after ${longest_s} s`);
  process.exit(1);
}, longest_s * 1000).unref();
const guard = ["/usr/bin/setpriv", "--pdeathsig", "KILL"];
const guarded = (command) => (existsSync(guard[0]) ? [...guard, ...command] : command);

// What the process inherits, without the settings of whoever runs the tests.
export function environment(extra = {}) {
  const kept = Object.entries(process.env).filter(([name]) => !/^(SHOAL|S1_MINI)_/.test(name));
  return { ...Object.fromEntries(kept), ...extra };
}

// Waits until `condition` returns something true, and returns it. The limit is generous: it ends hangs, nothing else.
export async function until(what, condition, seconds = 20) {
  const end = Date.now() + seconds * 1000 * slowness;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${seconds * slowness} s in vain for: ${what}`);
    await sleep(15);
  }
}

// How long this process got no time since it was asked last: a machine that stalls keeps servers from their work, too.
export class Stalls {
  #delay = monitorEventLoopDelay({ resolution: 10 });
  constructor() {
    this.#delay.enable();
  }
  longestMs() {
    const longest = this.#delay.max / 1e6;
    this.#delay.reset();
    return longest;
  }
}

export class Server {
  // flags: further flags of `shoal serve`; env: variables; ready: wait for /ready; wrap: what runs the command.
  static async start({ flags = [], env = {}, ready = true, scheme = "http", wrap = [] } = {}) {
    assert.ok(program, "SHOAL_PROGRAM must name the program to test");
    const server = new Server(flags, env, wrap);
    server.port = await until("the port in the log", () => {
      const match = server.log.match(/listening on https?:\/\/\S*:(\d+)/);
      if (!match) server.assertRuns();
      return match && Number(match[1]);
    }, 60);
    server.url = `${scheme}://127.0.0.1:${server.port}`;
    server.http = new Http(server.port);
    if (ready) {
      await until("/ready", async () => {
        server.assertRuns();
        return (await server.http.get("/ready")).status === 200;
      }, 120);
    }
    return server;
  }

  constructor(flags, env, wrap = []) {
    this.dir = mkdtempSync(join(tmpdir(), "shoal_server_"));
    this.references = join(this.dir, "references");
    mkdirSync(this.references);
    this.log = "";
    this.stdout = "";
    this.code = null;
    const [command, ...args] = guarded([...wrap, program, "serve", "--listen", "127.0.0.1:0", "--references-dir", this.references,
      "--cache-dir", join(this.dir, "cache"), ...flags]);
    this.child = spawn(command, args, { cwd: this.dir, env: environment({ ...patience, ...env }), stdio: ["ignore", "pipe", "pipe"] });
    this.pid = this.child.pid;
    this.child.stderr.setEncoding("utf8").on("data", (text) => (this.log += text));
    this.child.stdout.setEncoding("utf8").on("data", (text) => (this.stdout += text));
    this.exited = new Promise((resolve) => {
      this.child.on("close", (code, signal) => {
        running.delete(this);
        this.code = code ?? signal;
        resolve(this.code);
      });
    });
    running.add(this);
  }

  assertRuns() {
    assert.equal(this.code, null, `the server ended with ${this.code}:\n${this.log}`);
  }

  // Once: a second signal ends the program at once.
  signal(name) {
    this.signalled = true;
    this.child.kill(name);
  }

  // Ends the server as an operator would, and checks that it left in order.
  async stop({ seconds = 45 } = {}) {
    this.http?.close();
    if (this.code === null && !this.signalled) this.signal("SIGTERM");
    const late = setTimeout(() => this.child.kill("SIGKILL"), seconds * 1000 * slowness);
    const code = await this.exited;
    clearTimeout(late);
    rmSync(this.dir, { recursive: true, force: true });
    assert.doesNotMatch(this.log, /Sanitizer|runtime error:/, "a sanitizer's report");
    assert.equal(code, 0, `exit code; the log ends with\n${this.log.slice(-3000)}`);
  }

  // Resident memory in bytes, as the system sees it.
  residentBytes() {
    const status = readFileSync(`/proc/${this.pid}/status`, "utf8");
    return Number(status.match(/^VmRSS:\s+(\d+) kB/m)[1]) * 1024;
  }

  async stats() {
    const answer = await this.http.get("/v1/stats");
    assert.equal(answer.status, 200, answer.text());
    return answer.json();
  }

  async metrics() {
    const answer = await this.http.get("/metrics");
    assert.equal(answer.status, 200, answer.text());
    return new Metrics(answer.text());
  }

  // Requests that have come to the engine so far.
  async submitted() {
    return (await this.metrics()).value("shoal_engine_submitted_total");
  }

  // Requests that the engine holds, or the server on its behalf.
  async speaking() {
    const metrics = await this.metrics();
    return metrics.value("shoal_engine_requests") + metrics.value("shoal_http_speaking");
  }

  // Every hostile test ends with this: the server still speaks, and holds on to nothing.
  async assertSpeaks() {
    await until("everything that spoke to end", async () => (await this.speaking()) === 0, 30);
    const answer = await this.http.post("/v1/tts", { text: "Good morning.", seed: 1 });
    assert.equal(answer.status, 200, answer.text());
    const sum = sha256(answer.body);
    this.spoken ??= sum;
    assert.equal(sum, this.spoken, "not what it said before");
  }
}

// A test with a server of its own: test(name, withServer(options, async (server) => ...)).
export function withServer(options, use) {
  return async () => {
    const server = await Server.start(options);
    try {
      await use(server);
    } catch (error) {
      server.child.kill("SIGKILL");
      await server.exited;
      throw error;
    }
    await server.stop();
  };
}

// A server for all tests of a file: const server = sharedServer({ before, after }); in tests it is server().
// options: as Server.start, and agent: of its requests (http.Agent).
export function sharedServer(hooks, { agent, ...options } = {}) {
  let server;
  hooks.before(async () => {
    server = await Server.start(options);
    if (agent) server.http.agent = agent;
  }, { timeout: 240_000 });
  hooks.after(async () => server?.stop(), { timeout: 240_000 });
  return () => server;
}
