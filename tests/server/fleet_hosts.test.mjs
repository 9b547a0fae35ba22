// shoal fleet --hosts: workers of other machines, each in a network namespace, whose links drop and which vanish.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { Fleet, once, shares, without } from "./fleet_harness.mjs";
import { environment, program, slowness, until } from "./harness.mjs";
import { collect, Http, sha256 } from "./http.mjs";
import { freePorts } from "./ports.mjs";

const ip = (...words) => execFileSync("ip", words, { stdio: "pipe" });
const hosts = [];
after(() => hosts.forEach((host) => host.forget()));

// All that a host needs is tried with one that has no number of the test's.
function whyNot() {
  if (without) return without;
  try {
    new Network(0).remove();
    return false;
  } catch (error) {
    return `network namespaces and links between them need root and iproute2: ${error.message}`;
  }
}

// A namespace and the link to it.
class Network {
  constructor(number) {
    this.name = `sh${process.pid}_${number}`;  // of the link, too: 15 characters at most
    this.addresses = `198.18.${number}.0/24`;
    ip("netns", "add", this.name);
    ip("route", "add", "blackhole", this.addresses, "metric", "999");  // when the link is gone: not to whoever is elsewhere
    ip("link", "add", this.name, "type", "veth", "peer", "name", "eth0", "netns", this.name);
    ip("addr", "add", `198.18.${number}.1/24`, "dev", this.name);
    ip("link", "set", this.name, "up");
    ip("-n", this.name, "addr", "add", `198.18.${number}.2/24`, "dev", "eth0");
    this.link("up");
  }
  link(state) { ip("-n", this.name, "link", "set", "eth0", state); }
  cut() {
    ip("link", "del", this.name);
    ip("netns", "del", this.name);
  }
  remove() {
    this.cut();
    this.forget();
  }
  forget() { ip("route", "del", "blackhole", this.addresses, "metric", "999"); }
}

class Host {
  constructor(number) {
    this.network = new Network(number);
    this.address = `198.18.${number}.2:8080`;
    hosts.push(this);
    this.child = spawn("ip", ["netns", "exec", this.network.name, "setpriv", "--pdeathsig", "KILL", program, "serve", "--listen", this.address, "--device", "cpu",
      "--grace-s", "1"], { env: environment(), stdio: "ignore" });
  }
  link(state) { this.network.link(state); }
  vanish() {
    if (this.gone) return;
    this.gone = true;
    this.link("down");
    this.child.kill("SIGKILL");
    this.network.cut();
  }
  forget() {
    this.vanish();
    this.network.forget();
  }
  // Requests for speech that it has had.
  async share() {
    const text = await (await fetch(`http://${this.address}/metrics`)).text();
    return Number(text.match(/^shoal_engine_submitted_total\S* (\d+)/m)[1]);
  }
  ready() {
    return until(`${this.address} to be ready`, () => fetch(`http://${this.address}/ready`, { signal: AbortSignal.timeout(500) }).then((answer) => answer.ok, () => false), 60);
  }
}

const bodies = ["Good morning.", "The train leaves at noon."].flatMap((text, seed) => [{ text, seed }, { text: text.repeat(4), seed, streaming: true }]);
// Speaks until `stop.now`: every answer is 200 and right, or ends visibly broken after it had begun, and none takes for ever.
async function speakUntil(front, sums, stop, clients) {
  const counts = { right: 0, broken: 0 };
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let at = client; !stop.now; at++) {
      const which = at % bodies.length, began = Date.now();
      const answer = await front.post("/v1/tts", bodies[which]);
      assert.equal(answer.status, 200, answer.text());
      assert.ok(Date.now() - began < 60_000 * slowness, "hung");
      if (answer.whole) assert.equal(sha256(answer.body), sums[which]);
      counts[answer.whole ? "right" : "broken"]++;
    }
  }));
  return counts;
}

test("hosts whose links drop, that come, leave and vanish, while people are served", { timeout: 300_000 * slowness, skip: whyNot() }, async () => {
  const [one, two, three] = [1, 2, 3].map((number) => new Host(number));
  for (const host of hosts) await host.ready();
  const fleet = new Fleet(), front = (fleet.front = new Http(await freePorts(1)));
  fleet.http = [];
  const file = join(fleet.dir, "hosts");
  const list = (...lines) => writeFileSync(file, lines.join("\n"));
  list("# first", `${one.address} name=one`, `${two.address} weight=2`);
  fleet.launch(["--workers", "0", "--hosts", file, "--listen", `127.0.0.1:${front.port}`, "--admin-key", "boss"]);
  const states = async () => Object.fromEntries((await front.get("/v1/workers")).json().workers.map(({ name, state }) => [name, state]));
  const becomes = (name, state) => until(`${name} to be ${state}`, async () => (await states())[name] === state, 30);
  const order = (what, worker) => front.post(`/v1/admin/${what}`, { worker }, { headers: { authorization: "Bearer boss" } });
  const speaksMore = async (host) => {
    const before = await host.share();
    await until(`${host.address} to speak`, async () => (await host.share()) > before, 30);
  };
  await until("the fleet", async () => (await front.get("/ready").catch(() => ({}))).status === 200);
  await becomes("one", "ready");
  await becomes(two.address, "ready");
  const sums = [];
  for (const body of bodies) sums.push(sha256((await front.post("/v1/tts", body)).body));
  const stop = { now: false };
  const harm = async () => {
    await speaksMore(one);
    assert.match((await order("restart", "one")).text(), /one is of another machine; restart it there/);
    assert.equal((await order("drain", two.address)).status, 200);
    const long = collect(await front.open("POST", "/v1/tts", { body: { text: "On and on it goes, with no end in sight. ".repeat(60), streaming: true } }));
    assert.equal((await order("resume", two.address)).status, 200);
    one.link("down");
    await becomes("one", "unreachable");
    assert.ok(!(await long).whole, "a begun answer of a lost host ends broken");
    await speaksMore(two);
    one.link("up");
    await becomes("one", "ready");
    await speaksMore(one);

    list(`${one.address} name=one weight=none`);
    fleet.child.kill("SIGHUP");
    await until("the refusal", () => /SIGHUP: hosts: line 1: weight: .*; the hosts stay as they were/.test(fleet.log));
    list(`${two.address} weight=1`, `${three.address} name=three`);
    fleet.child.kill("SIGHUP");
    await becomes("three", "ready");
    await speaksMore(three);
    assert.deepEqual(Object.keys(await states()), [two.address, "three"]);
    const last = await one.share();
    await speaksMore(three);
    await speaksMore(two);
    assert.equal(await one.share(), last, "a host that left gets no more requests");

    two.vanish();
    await becomes(two.address, "unreachable");
    await speaksMore(three);
  };
  const [counts] = await Promise.all([speakUntil(front, sums, stop, 6), harm().finally(() => (stop.now = true))]).catch((error) => {
    fleet.child.kill();
    throw error;
  });
  assert.equal(await fleet.stop(), 0, fleet.log);
  assert.ok(counts.right > 6 && counts.broken < counts.right, JSON.stringify(counts));
});

// Each has a worker, and the other's balancer as a host.
test("two fleets that name each other pass nothing to and fro, and see that none is ready", { timeout: 120_000 * slowness, skip: without }, async (t) => {
  const fleets = [new Fleet(), new Fleet()], base = await freePorts(4);
  t.after(() => fleets.forEach((fleet) => fleet.child.kill("SIGKILL")));
  fleets.forEach((fleet, i) => {
    const [worker, front, other] = [base + i, base + 2 + i, base + 3 - i], file = join(fleet.dir, "hosts");
    writeFileSync(file, `127.0.0.1:${other} name=other\n`);
    Object.assign(fleet, { front: new Http(front), http: [new Http(worker)] });
    fleet.launch(["--devices", "cpu", "--base-port", String(worker), "--hosts", file, "--listen", `127.0.0.1:${front}`, "--strategy", "round-robin", "--queue-limit", "9"]);
  });
  for (const fleet of fleets) await fleet.ready(0);
  const getting = (fleet) => fleet.front.get("/v1/workers").then((answer) => answer.json().workers.map(({ state }) => state).join(), () => "");
  for (const fleet of fleets) await until("both to be seen", async () => (await getting(fleet)) === "ready,ready");
  // The balancers look for themselves.
  for (const fleet of fleets) await until("both to get requests", async () => (await fleet.front.get("/ready")).json().workers === 2);
  const first = fleets[0];
  const speak = () => first.front.post("/v1/tts", bodies[0]);
  const had = async () => (await Promise.all(fleets.map(shares))).flat();
  const sums = new Set(), before = await had();
  for (let i = 0; i < 8; i++) sums.add(sha256((await speak()).body));
  assert.equal(sums.size, 1);
  assert.deepEqual((await had()).map((count, at) => count - before[at]), [4, 4]);
  // Without a worker of its own each would take the other for ready. The supervisors wait, so that no worker comes back.
  const stopped = fleets.flatMap((fleet) => [fleet.child.pid, fleet.pid(0)]);
  stopped.forEach((pid) => process.kill(pid, "SIGSTOP"));
  await until("neither to be ready", async () => {
    const answers = await Promise.all(fleets.map((fleet) => fleet.front.get("/ready")));
    return answers.every(({ status }) => status === 503);
  });
  stopped.forEach((pid) => process.kill(pid, "SIGCONT"));
  for (const fleet of fleets) await fleet.ready(0);
  await until("it to speak", async () => (await speak()).status === 200);
  for (const fleet of fleets) assert.equal(await fleet.stop(), 0, fleet.log);
});

test("two balancers without workers that name each other answer at once that none is ready", { timeout: 120_000 * slowness, skip: without }, async (t) => {
  const base = await freePorts(2);
  t.after(() => fleets.forEach((fleet) => fleet.child.kill("SIGKILL")));
  const fleets = [0, 1].map((i) => {
    const fleet = new Fleet(), file = join(fleet.dir, "hosts");
    writeFileSync(file, `127.0.0.1:${base + 1 - i} name=other\n`);
    Object.assign(fleet, { front: new Http(base + i), http: [] });
    fleet.launch(["--workers", "0", "--hosts", file, "--listen", `127.0.0.1:${base + i}`]);
    return fleet;
  });
  for (const fleet of fleets) await until("an answer", () => fleet.front.get("/ready").catch(() => false));
  for (let i = 0; i < 5; i++) assert.match(String((await fleets[0].front.post("/v1/tts", bodies[0])).status), /^50[38]$/);
  for (const fleet of fleets) assert.equal(await fleet.stop(), 0, fleet.log);
});

// A server that sends each piece when the one before was heard. A balancer that waits for full segments holds each
// for 200 ms.
test("pieces of an answer leave the balancer at once", { timeout: 120_000 * slowness, skip: without }, async (t) => {
  const pieces = 40, own = await freePorts(2), front = own + 1, fleet = new Fleet();
  t.after(() => fleet.child.kill("SIGKILL"));
  let send;
  const server = createServer((request, response) => {
    if (request.url === "/ready") return response.end("{}");
    let left = pieces;
    send = () => (left-- > 0 ? response.write(Buffer.alloc(4096, 1)) : response.end());
    send();
  });
  await new Promise((resolve) => server.listen(own, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  writeFileSync(join(fleet.dir, "hosts"), `127.0.0.1:${own} name=paced\n`);
  Object.assign(fleet, { front: new Http(front), http: [] });
  fleet.launch(["--workers", "0", "--hosts", join(fleet.dir, "hosts"), "--listen", `127.0.0.1:${front}`]);
  await until("an answer", async () => (await fleet.front.get("/ready").catch(() => ({}))).status === 200);
  const began = performance.now(), answer = await fleet.front.open("POST", "/v1/tts", { body: { text: "Hello." } });
  let bytes = 0, heard = 0;
  for await (const piece of answer) {
    bytes += piece.length;
    for (; heard < Math.floor(bytes / 4096); heard++) send();
  }
  assert.equal(bytes, 4096 * pieces);
  const held_ms = (performance.now() - began) / pieces;
  assert.ok(held_ms < 100 * slowness, `${held_ms} ms a piece`);
  assert.equal(await fleet.stop(), 0, fleet.log);
});

test("a hosts file with nonsense is one sentence and exit code 2", { timeout: 60_000 * slowness }, async () => {
  const fleet = new Fleet(), file = join(fleet.dir, "hosts"), listen = "127.0.0.1:8000";
  for (const [text, flags, sentence] of [
    ["\nsomewhere", [], /hosts: line 2: expected an IPv4 address and a port, as in 10\.0\.0\.7:8080, got "somewhere"/],
    [listen, [], /hosts: 127\.0\.0\.1:8000 is where the balancer listens itself/],
    ["", ["--workers", "0"], /hosts: \S+ names none, and workers is 0/],
    ["1.2.3.4:5", ["--balancer", "none"], /hosts: there is no balancer/],
  ]) {
    writeFileSync(file, text);
    const { code, log } = await once(["--hosts", file, "--listen", listen, ...flags]);
    assert.equal(code, 2, log);
    assert.match(log, sentence);
    assert.equal(log.match(/\n/g).length, 1, log);
  }
  assert.match((await once(["--hosts", "/no/such/file"])).log, /hosts: \/no\/such\/file/);
  assert.match((await once(["--workers", "0"])).log, /workers: expected 1 or more, or 0 with --hosts/);
  rmSync(fleet.dir, { recursive: true, force: true });
});
