// shoal fleet: workers that are killed, stopped and left alone by their supervisor, while people are being served.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { balanced, Fleet, fleetTest, isAlive, once, ready, seesAll, shares, speakUntil, unbalanced, without } from "./fleet_harness.mjs";
import { slowness, until } from "./harness.mjs";
import { collect, Http, sha256 } from "./http.mjs";
import { freePorts, listen } from "./ports.mjs";

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
  fleet.launch(["--devices", "cpu", "--per-device", "2", "--base-port", String(base), ...unbalanced]);
  assert.equal(await fleet.exited, 2);
  assert.equal(fleet.log, `shoal: base_port: port ${base + 1} of w2 cannot be used: Address already in use\n`);
  other.close();
  rmSync(fleet.dir, { recursive: true, force: true });
});

balanced("workers killed and stopped under load: every request is answered, once and rightly", 2, async (fleet) => {
  await ready(fleet);
  const stop = { now: false };
  const speaking = speakUntil(fleet, stop, 12, "whole answers");
  const harm = async () => {
    for (const [worker, signal] of [[0, "SIGKILL"], [1, "SIGKILL"], [0, "SIGSTOP"]]) {
      const times = fleet.pids(worker).length;
      process.kill(fleet.pid(worker), signal);
      await until("the restart", () => fleet.pids(worker).length > times, 60);
      await fleet.ready(worker);
      await seesAll(fleet);
    }
    stop.now = true;
  };
  const [counts] = await Promise.all([speaking, harm()]);
  for (const count of counts) assert.ok(count > 0);
});

balanced("two of three workers that die at once lose no request", 3, async (fleet) => {
  await seesAll(fleet);
  const stop = { now: false };
  const speaking = speakUntil(fleet, stop, 24, "whole answers");
  const harm = async () => {
    for (let round = 1; round <= 2; round++) {
      for (const worker of [0, 1]) process.kill(fleet.pid(worker), "SIGKILL");
      await until("the restarts", () => [0, 1].every((worker) => fleet.pids(worker).length > round), 60);
      for (const worker of [0, 1]) await fleet.ready(worker);
      await seesAll(fleet);
    }
    stop.now = true;
  };
  const [counts] = await Promise.all([speaking, harm()]);
  for (const count of counts) assert.ok(count > 0);
});

balanced("a stream that had begun when its worker died ends broken", 1, async (fleet) => {
  await ready(fleet);
  const message = await fleet.front.open("POST", "/v1/tts", { body: { text: "On and on it goes, with no end in sight. ".repeat(60), seed: 1, streaming: true } });
  process.kill(fleet.pid(0), "SIGKILL");
  const answer = await collect(message);
  assert.equal(answer.status, 200);
  assert.ok(!answer.whole);
  await ready(fleet);
});

balanced("a dead balancer is started again", 1, async (fleet) => {
  await ready(fleet);
  process.kill(fleet.balancerPid(), "SIGKILL");
  await until("the restart", () => [...fleet.log.matchAll(/balancer: started/g)].length === 2);
  await ready(fleet);
});

balanced("strategy voice: a voice stays with its worker, by header, voice and reference_id alike", 2, async (fleet) => {
  await seesAll(fleet);
  const names = ["clara", "nora", "ruth", "iris", "hugo", "edgar", "felix", "oscar"];
  const homes = new Set();
  for (const name of names) {
    const before = await shares(fleet);
    const requests = [
      ["/v1/audio/speech", { model: "shoal", input: "Hello.", voice: name, response_format: "wav" }],
      ["/v1/tts", { text: "Hello.", reference_id: name }],
      ["/v1/tts", { text: "Hello." }, { "x-shoal-voice": name }],
    ];
    for (const [path, body, headers] of requests) {
      const answer = await fleet.front.post(path, body, { headers });
      assert.equal(answer.status, 200, answer.text());
    }
    const had = (await shares(fleet)).map((count, worker) => count - before[worker]);
    assert.deepEqual([...had].sort(), [0, requests.length], `${name}: ${had}`);
    homes.add(had.indexOf(requests.length));
  }
  assert.equal(homes.size, 2, "every voice has the same worker");
}, ["--strategy", "voice"]);

balanced("round robin shares evenly, and SIGTERM answers what is inside", 2, async (fleet) => {
  await seesAll(fleet);
  const before = await shares(fleet);
  for (let i = 0; i < 6; i++) assert.equal((await fleet.front.post("/v1/tts", sentence)).status, 200);
  assert.deepEqual((await shares(fleet)).map((count, worker) => count - before[worker]), [3, 3]);
  const inside = Array.from({ length: 4 }, () => fleet.front.post("/v1/tts", { text: "Every morning the fishermen went out. ".repeat(20), seed: 2 }));
  await until("them to be inside", async () => (await shares(fleet)).reduce((sum, count) => sum + count) >= before[0] + before[1] + 10);
  fleet.child.kill("SIGTERM");
  for (const answer of await Promise.all(inside)) assert.ok(answer.status === 200 && answer.whole, answer.text().slice(0, 200));
  for (const http of [...fleet.http, fleet.front]) http.close();
  assert.equal(await fleet.exited, 0, fleet.log);
  rmSync(fleet.dir, { recursive: true, force: true });
}, ["--strategy", "round-robin"]);

test("bad input is one sentence and exit code 2", { timeout: 120_000 * slowness }, async () => {
  for (const [flags, sentence] of [
    [["--strategy", "random"], /strategy: expected least-connections, round-robin or voice, got "random"/],
    [["--balancer", "nginx"], /balancer: expected haproxy or none, got "nginx"/],
    [["--listen", "somewhere:1"], /listen: expected an IPv4 address and a port/],
    [["--listen", "127.0.0.1:8001"], /listen: port 8001 is that of w1/],
    [["--haproxy", "/no/such/haproxy"], /haproxy: .*apt-get install haproxy/],
    [["--haproxy", "/bin/false"], /haproxy: \/bin\/false does not accept the configuration: exit code 1/],
    [["--devices", "tpu"], /devices: expected auto, cpu or cuda:N/],
    [["--per-device", "10000"], /per_device: /],
    [["--model", "/no/such/model", "--balancer", "none", "--base-port", String(await freePorts(1))], /w1 refuses its settings: model folder/],
    [["--trace", "file"], /trace: every worker would write the same file/],
    [["--nonsense"], /--nonsense/],
  ]) {
    const { code, log } = await once(flags);
    assert.equal(code, 2, `${flags}: ${log}`);
    assert.match(log, sentence);
    if (!flags.includes("--model")) assert.equal(log.match(/\n/g).length, 1, log);
  }
});

test("--print-haproxy prints what HAProxy accepts", { timeout: 60_000 * slowness }, async () => {
  const { code, log } = await once(["--print-haproxy", "--with-balancer", "--strategy", "voice", "--listen", "0.0.0.0:8765"]);
  assert.equal(code, 0);
  assert.match(log, /^global\n/);
  assert.match(log, /bind 0\.0\.0\.0:8765\n/);
  assert.match(log, /server w1 127\.0\.0\.1:8001\n$/);
});

// As it is written for older servers, but for the ports.
test("serve --workers 2 --base-port --with-balancer --stagger-start --strategy", { timeout: 120_000 * slowness, skip: without }, async () => {
  const fleet = new Fleet();
  fleet.base = await freePorts(3);
  fleet.launch(["--workers", "2", "--base-port", String(fleet.base), "--with-balancer", "--stagger-start", "10", "--device", "cpu",
    "--strategy", "round-robin", "--listen", `127.0.0.1:${fleet.base + 2}`, "--no-web-page", "--max-queue=7"], "serve");
  [0, 1, 2].forEach((i) => (i < 2 ? (fleet.http ??= []).push(new Http(fleet.base + i)) : (fleet.front = new Http(fleet.base + i))));
  for (const worker of [0, 1]) await fleet.ready(worker);
  await ready(fleet);
  assert.equal((await fleet.front.post("/v1/tts", sentence)).status, 200);
  for (const http of fleet.http) assert.equal((await http.get("/")).status, 404, "an option did not reach the worker");
  assert.equal(await fleet.stop(), 0, fleet.log);
});

test("serve --workers: bad input is one sentence and exit code 2", { timeout: 60_000 * slowness }, async () => {
  for (const [flags, sentence] of [
    [["--workers", "0"], /workers: expected 1, got 0/],
    [["--workers", "many"], /workers: expected an integer/],
    [["--workers", "1000"], /workers: expected a whole number, 1 to 256/],
    [["--workers", "2", "--device", "tpu"], /devices: expected auto, cpu or cuda:N/],
    [["--workers", "2", "--listen", "127.0.0.1:1"], /listen: workers have ports from base_port on/],
    [["--workers", "2", "--device", "cpu", "--max-queue", "x"], /max_queue: /],
    [["--workers", "2", "--device", "cpu", "--with-balancer", "--listen", "there"], /listen: expected an IPv4/],
    [["--workers", "2", "--device", "cpu", "--with-balancer", "--strategy", "luck"], /strategy: expected least-connections/],
    [["--workers", "2", "--device", "cpu", "--strategy", "voice"], /strategy: is that of a balancer/],
  ]) {
    const fleet = new Fleet();
    fleet.launch(flags, "serve");
    assert.equal(await fleet.exited, 2, fleet.log);
    assert.match(fleet.log, sentence);
    assert.equal(fleet.log.match(/\n/g).length, 1, fleet.log);
    rmSync(fleet.dir, { recursive: true, force: true });
  }
});

balanced("SIGHUP: a rolling restart under load fails no request, and takes one worker at a time", 2, async (fleet) => {
  await ready(fleet);
  await until("the supervisor to see both", () => /w2: ready/.test(fleet.log));
  await seesAll(fleet);
  const stop = { now: false };
  const speaking = speakUntil(fleet, stop, 8);
  const before = fleet.allPids();
  const done = async () => {
    for (let round = 1; round <= 2; round++) {
      fleet.child.kill("SIGHUP");
      await until("the rolling restart", () => fleet.log.match(/rolling restart: done/g)?.length === round, 120);
    }
    stop.now = true;
  };
  const [counts] = await Promise.all([speaking, done()]);
  assert.ok(counts.every((count) => count > 0));
  assert.equal(fleet.allPids().length, before.length + 4);
  assert.ok(!before.some(isAlive));
  const events = [...fleet.log.slice(fleet.log.indexOf("rolling restart")).matchAll(/ (w\d): (ends|ready)/g)].map((match) => `${match[1]} ${match[2]}`);
  assert.deepEqual(events, ["w1 ends", "w1 ready", "w2 ends", "w2 ready", "w1 ends", "w1 ready", "w2 ends", "w2 ready"]);
});

test("SIGHUP takes new settings from the file, and refuses wrong ones as a whole", { timeout: 120_000 * slowness, skip: without }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "shoal_fleet_config_"));
  const config = join(folder, "a.toml");
  writeFileSync(config, "web_page = true\n");
  const fleet = await Fleet.start(2, ["--config", config]);
  const pages = () => Promise.all(fleet.http.map(async (http) => (await http.get("/")).status));
  assert.deepEqual(await pages(), [200, 200]);
  writeFileSync(config, "web_page = 7\n");
  fleet.child.kill("SIGHUP");
  await until("the refusal", () => /SIGHUP: .*web_page.*the fleet goes on as it was/.test(fleet.log));
  assert.equal(fleet.allPids().length, 2);
  writeFileSync(config, "web_page = false\n");
  fleet.child.kill("SIGHUP");
  await until("the rolling restart", () => /rolling restart: done/.test(fleet.log), 60);
  assert.deepEqual(await pages(), [404, 404]);
  assert.equal(await fleet.stop(), 0, fleet.log);
  rmSync(folder, { recursive: true, force: true });
});
