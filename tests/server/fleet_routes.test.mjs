// What a fleet tells of itself on the balancer's address, and what an operator may ask of it while people are served.
import assert from "node:assert/strict";
import { Metrics } from "./exposition.mjs";
import { allReady, balanced, ready, seesAll, shares, speakUntil } from "./fleet_harness.mjs";
import { until } from "./harness.mjs";
import { Http } from "./http.mjs";

const withKey = ["--admin-key", "boss"];
const headers = { authorization: "Bearer boss" };
const order = (fleet, what, body) => fleet.front.post(`/v1/admin/${what}`, body, { headers });
const rolling = async (fleet) => (await fleet.front.get("/v1/workers")).json().rolling;
const ended = (fleet, what, outcome) => until(`the ${what} to be ${outcome}`, async () => {
  const now = await rolling(fleet);
  return now.what === what && now.outcome === outcome && now;
}, 60);

balanced("the fleet tells how it is, and the sum of what its workers tell", 2, async (fleet) => {
  await seesAll(fleet);
  for (let i = 0; i < 4; i++) assert.equal((await fleet.front.post("/v1/tts", { text: "Hello.", seed: i })).status, 200);
  // A load is that of the last look at a worker, which may be older than its last answer.
  const { workers, balancer, counts } = await until("idle workers", async () => {
    const now = (await fleet.front.get("/v1/workers")).json();
    return now.workers.every((worker) => worker.load === 0) && now;
  }, 60);
  assert.deepEqual(counts, { total: 2, getting_requests: 2, ready: 2 });
  assert.equal(balancer.pid, fleet.balancerPid());
  assert.deepEqual(workers.map(({ name, state, pid, device, port, restarts, last_error }) => ({ name, state, pid, device, port, restarts, last_error })),
    [0, 1].map((i) => ({ name: `w${i + 1}`, state: "ready", pid: fleet.pid(i), device: "cpu", port: fleet.base + i, restarts: 0, last_error: null })));
  for (const worker of workers) assert.ok(worker.memory.resident_bytes > 10e6);
  const submitted = (await shares(fleet)).reduce((sum, count) => sum + count);
  // A worker that does not answer within half a second is left out.
  for (const path of ["/v1/stats", "/v1/stats?model=shoal"])
    await until("all to be counted", async () => (await fleet.front.get(path)).json().requests?.submitted === submitted);
  assert.equal((await fleet.front.get("/v1/stats?model=none")).status, 404);
  for (const path of ["/health", "/v1/health"]) {
    const health = await until("a worker to tell", async () => {
      const now = (await fleet.front.get(path)).json();
      return now.model_loaded && now;
    });
    assert.equal(health.status, "ok");
    assert.equal(health.workers.ready, 2);
  }
  assert.equal(new Metrics((await fleet.front.get("/metrics")).text()).value("shoal_fleet_ready"), 2);
  for (const { targets, labels } of (await fleet.front.get("/http_sd")).json()) {
    const worker = new Http(Number(targets[0].split(":")[1]));
    assert.match((await worker.get("/metrics")).text(), /^shoal_ready\S* 1$/m, labels.worker);
    worker.close();
  }
  assert.equal((await order(fleet, "restart")).status, 404, "without an admin key there are no orders");
  process.kill(fleet.pid(1), "SIGKILL");
  await until("the end to be told", async () => (await fleet.front.get("/v1/workers")).json().workers[1].last_error === "signal 9 (Killed)");
});

balanced("drain, restart and reload under load lose nothing; a reload that fails is taken back", 2, async (fleet) => {
  await ready(fleet);
  await seesAll(fleet);
  await allReady(fleet);
  assert.equal((await fleet.front.post("/v1/admin/restart")).status, 401);
  const stop = { now: false };
  const speaking = speakUntil(fleet, stop, 8);
  const harm = async () => {
    assert.equal((await order(fleet, "drain", { worker: "w1" })).status, 200);
    assert.equal((await order(fleet, "drain", { worker: "w2" })).status, 409);
    assert.equal((await order(fleet, "restart")).status, 409);
    await until("w1 to be idle", async () => (await fleet.front.get("/v1/workers")).json().workers[0].load === 0);
    const [before] = await shares(fleet);
    assert.equal((await fleet.front.post("/v1/tts", { text: "Hello." })).status, 200);
    assert.equal((await shares(fleet))[0], before);
    assert.equal((await order(fleet, "resume", { worker: "w1" })).status, 200);
    await until("w1 to speak again", async () => (await shares(fleet))[0] > before);

    assert.equal((await order(fleet, "restart", { worker: "w2" })).status, 202);
    assert.deepEqual((await ended(fleet, "restart", "done")).turns, ["w2"]);
    assert.equal(fleet.pids(0).length, 1);
    assert.equal((await order(fleet, "reload", { max_queue: 77, web_page: false })).status, 202);
    await ended(fleet, "reload", "done");
    for (const http of fleet.http) assert.equal((await http.get("/")).status, 404, "a setting did not reach the worker");

    const unchanged = fleet.pid(1);
    assert.equal((await order(fleet, "reload", { model: "/no/such/model" })).status, 202);
    await ended(fleet, "rollback", "done");
    assert.equal(fleet.pid(1), unchanged);
    assert.match((await fleet.front.get("/v1/workers")).json().workers[0].last_error, /exit code 2: model folder/);
    for (const [body, status] of [[{ max_queue: "x" }, 400], [{ device: "cpu" }, 400], [{ nonsense: 1 }, 400]])
      assert.equal((await order(fleet, "reload", body)).status, status, JSON.stringify(body));
    stop.now = true;
  };
  const [counts] = await Promise.all([speaking, harm()]);
  assert.ok(counts.every((count) => count > 0));
}, withKey);
