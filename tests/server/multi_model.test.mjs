// Amazon SageMaker's multi-model endpoints, played against the program by the documented contract: models come and go by
// requests, beside the one that the server starts with.
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Server, slowness, until, withServer } from "./harness.mjs";
import { sha256 } from "./http.mjs";

const work = mkdtempSync(join(tmpdir(), "shoal_multi_"));
const root = join(work, "opt/ml/models");
const url = (name) => join(root, name, "model");
const voice = fileURLToPath(new URL("../../voice", import.meta.url));
const say = { text: "Good morning.", seed: 1, max_new_tokens: 4 };
// Loads are many here.
const env = { SHOAL_THREADS: "1", SHOAL_WARM_UP: "false" };
let server, spoken;

const load = (model_name, from = url(model_name), more = {}) => server.http.post("/models", { model_name, url: from, ...more });
const unload = (name) => server.http.ask("DELETE", `/models/${name}`);
const invoke = (name, body = say) => server.http.post(`/models/${name}/invoke`, body);
const target = (header, body = say) =>
  server.http.ask("POST", "/invocations", { body: JSON.stringify(body), headers: { "content-type": "application/json", "x-amzn-sagemaker-target-model": header } });
const names = async (path = "/models") => (await server.http.get(path)).json().models.map(({ modelName }) => modelName);
const served = async () => (await server.http.get("/v1/models")).json().data.filter(({ alias_of }) => !alias_of).map(({ id }) => id);
const log = (answer) => `${answer.status} ${answer.text().slice(0, 300)}`;

before(async () => {
  for (const name of ["a", "b", "c"]) cpSync(voice, url(name), { recursive: true });
  server = await Server.start({ flags: ["--models-root", root], env });
  const answer = await server.http.post("/invocations", say);
  assert.equal(answer.status, 200, log(answer));
  spoken = sha256(answer.body);
}, { timeout: 240_000 });
after(async () => {
  await server?.stop();
  rmSync(work, { recursive: true, force: true });
});

test("a model is loaded once, is told of everywhere, and leaves again", async () => {
  assert.deepEqual(await names(), []);
  assert.equal((await invoke("a")).status, 404);
  const answer = await load("a", url("a"), { a_later_field: true });
  assert.equal(answer.status, 200, log(answer));
  assert.deepEqual(answer.json(), { modelName: "a", modelUrl: url("a") });
  assert.deepEqual((await server.http.get("/models/a")).json(), answer.json());
  assert.deepEqual((await server.http.get("/models")).json(), { models: [answer.json()] });
  const again = await load("a");
  assert.deepEqual([again.status, again.json().error.code], [409, "already_exists"]);
  assert.equal((await load("shoal", url("a"))).status, 409, "the server's own name");

  assert.deepEqual(await served(), ["shoal", "a"]);
  assert.equal((await server.metrics()).value("shoal_ready", { model: "a" }), 1);
  assert.equal((await server.http.get("/health")).json().models.length, 2);
  assert.equal((await server.http.get("/v2/models/a/ready")).status, 200);
  assert.equal((await server.http.get("/ping")).status, 200);
  assert.deepEqual((await server.stats()).models.map(({ id, name }) => [id, name]), [[0, "shoal"], [1, "a"]]);

  const spoke = await invoke("a");
  assert.deepEqual([spoke.status, sha256(spoke.body)], [200, spoken]);
  const other = await invoke("a", { input: "Good morning.", voice: "default", model: "no such", seed: 1, max_new_tokens: 4, response_format: "wav" });
  assert.equal(other.status, 200, "the path names the model, not the body");
  for (const header of ["a", "a.tar.gz", "shoal"]) {
    const named = await target(header);
    assert.deepEqual([named.status, sha256(named.body)], [200, spoken], header);
  }
  for (const header of ["b", "b.tar.gz", ".tar.gz", "../a"]) assert.equal((await target(header)).status, 404, header);

  assert.equal((await unload("a")).status, 200);
  for (const gone of [unload("a"), server.http.get("/models/a"), invoke("a"), target("a"), unload("shoal")])
    assert.equal((await gone).status, 404);
  assert.deepEqual([await names(), await served()], [[], ["shoal"]]);
  assert.equal((await server.http.get("/v2/models/a/ready")).status, 404);
  assert.doesNotMatch((await server.http.get("/metrics")).text(), /model="a"/);
});

test("what there is no memory for is 507 with the plan, before its weights are read", async () => {
  cpSync(url("a"), url("huge"), { recursive: true });
  const config = JSON.parse(readFileSync(join(url("huge"), "config.json"), "utf8"));
  Object.assign(config, { n_layer: 256, intermediate_size: 1 << 20 });  // half a terabyte
  writeFileSync(join(url("huge"), "config.json"), JSON.stringify(config));
  const answer = await load("huge");
  assert.equal(answer.status, 507, log(answer));
  assert.equal(answer.json().error.code, "resource_exhausted");
  assert.match(answer.json().error.message, /MB are needed, but .* MB are free/);
  assert.deepEqual([await names(), await served()], [[], ["shoal"]]);
  const after_it = await load("a");
  assert.equal(after_it.status, 200, log(after_it));
  assert.equal((await unload("a")).status, 200);
});

test("only models below the root are loaded, by names that can stand in a path", async () => {
  const secret = join(work, "secret");
  cpSync(voice, secret, { recursive: true });
  symlinkSync(secret, join(root, "link"));
  mkdirSync(join(root, "empty"));
  writeFileSync(join(root, "file"), "x");
  const refused = async (status, name, from) => {
    const answer = await load(name, from);
    assert.equal(answer.status, status, `${name} ${from}: ${log(answer)}`);
    assert.equal(typeof answer.json().error.message, "string");
  };
  for (const from of [secret, join(root, "../../../secret"), `${root}/a/../../../../secret`, join(root, "link"), `${root}_beside/a`, root, "/", "/etc/passwd",
    "a/model", "", "s3://bucket/a", `${root}/file`, `${url("a")}\0x`, "x".repeat(9000)]) await refused(400, "x", from);
  for (const from of [join(root, "none"), join(root, "empty")]) await refused(404, "x", from);
  for (const name of ["", ".", "..", "../x", "a/b", "a b", "-a", "a\n", "é", "x".repeat(300)]) await refused(400, name, url("a"));
  const damaged = url("damaged");
  cpSync(voice, damaged, { recursive: true });
  writeFileSync(join(damaged, "model.safetensors"), "no weights");
  await refused(400, "damaged", damaged);
  for (const body of ["", "{", "[]", '"a"', "{}", '{"model_name":"a"}', '{"model_name":1,"url":"/a"}'])
    assert.equal((await server.http.ask("POST", "/models", { body, headers: { "content-type": "application/json" } })).status, 400, body);
  assert.equal((await server.http.ask("POST", "/models", { body: "a", headers: { "content-type": "text/plain" } })).status, 415);
  assert.deepEqual(await names(), []);
  for (const path of ["/models/%2e%2e", "/models/a%2fb", "/models/%00", "/models/x/invoke", "/models//invoke"])
    assert.ok([400, 404, 405].includes((await server.http.get(path)).status), path);
  await server.assertSpeaks();
});

test("the same model asked for at once is loaded once, others come one after the other", async () => {
  const answers = await Promise.all([load("a"), load("a"), load("a"), load("b", url("a")), load("c")]);
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 409, 409]);
  assert.deepEqual(await names(), ["a", "b", "c"]);
  assert.deepEqual(await names("/models?next_page_token=a"), ["b", "c"]);
  for (const answer of await Promise.all(["a", "b", "c"].map(unload))) assert.equal(answer.status, 200);
});

test("requests inside end before their model leaves, and those that come later are told", async () => {
  for (let round = 0; round < 3; ++round) {
    assert.equal((await load("a")).status, 200);
    let left = false;
    const traffic = Array.from({ length: 8 }, async (_, i) => {
      await sleep(i * 15);
      while (!left) {
        const answer = await (i % 2 ? invoke("a") : target("a.tar.gz"));
        if (answer.status !== 404) assert.deepEqual([answer.status, answer.whole, sha256(answer.body)], [200, true, spoken], log(answer));
      }
    });
    await sleep(150 * slowness);
    const answer = await unload("a");
    assert.equal(answer.status, 200, log(answer));
    assert.equal((await invoke("a")).status, 404);
    left = true;
    await Promise.all(traffic);
  }
  const metrics = await server.metrics();
  assert.equal(metrics.value("shoal_http_speaking"), 0);
});

test("200 random calls: the answers are those of a list of names", async () => {
  let state = 7;
  const random = (below) => (state = (state * 48271) % 2147483647) % below;
  const loaded = new Set();
  for (let call = 0; call < 200; ++call) {
    const name = ["a", "b", "c"][random(3)];
    const kind = random(10);
    const told = `call ${call}: kind ${kind}, ${name}`;
    if (kind < 2) {
      const { status } = await load(name);
      assert.equal(status, loaded.has(name) ? 409 : 200, told);
      loaded.add(name);
    } else if (kind < 4) {
      assert.equal((await unload(name)).status, loaded.delete(name) ? 200 : 404, told);
    } else if (kind < 6) {
      assert.equal((await server.http.get(`/models/${name}`)).status, loaded.has(name) ? 200 : 404, told);
      assert.deepEqual(await names(), [...loaded].sort(), told);
    } else if (kind < 7) {
      assert.deepEqual((await served()).sort(), ["shoal", ...loaded].sort(), told);
      assert.equal((await server.http.get("/ready")).status, 200, told);
    } else {
      const answer = await (kind < 9 ? invoke(name) : target(name));
      assert.equal(answer.status, loaded.has(name) ? 200 : 404, `${told}: ${log(answer)}`);
      if (answer.status === 200) assert.equal(sha256(answer.body), spoken, told);
    }
  }
  for (const name of loaded) assert.equal((await unload(name)).status, 200);
  await server.assertSpeaks();
});

test("memory comes back: ten loads take no more than two", async () => {
  const resident = async (times) => {
    for (let i = 0; i < times; ++i) {
      assert.equal((await load("a")).status, 200);
      assert.equal((await invoke("a")).status, 200);
      assert.equal((await unload("a")).status, 200);
    }
    return server.residentBytes();
  };
  const few = await resident(2);
  const many = await resident(10);
  assert.ok(many < few + 60e6, `${few} bytes after 2, ${many} after 12`);
});

test("with keys, models come and go by those who have one", withServer({
  env: { ...env, SHOAL_API_KEY: "sesame", SHOAL_MODELS_ROOT: root, SHOAL_MODEL_TTL_S: "1" },
}, async (guarded) => {
  const key = { authorization: "Bearer sesame" };
  const ask = (method, path, headers = {}, body) =>
    guarded.http.ask(method, path, { headers: { "content-type": "application/json", ...headers }, body: body && JSON.stringify(body) });
  const wanted = { model_name: "a", url: url("a") };
  for (const [method, path, body] of [["POST", "/models", wanted], ["GET", "/models"], ["GET", "/models/a"], ["DELETE", "/models/a"], ["POST", "/models/a/invoke", say]])
    assert.equal((await ask(method, path, {}, body)).status, 401, `${method} ${path}`);
  assert.equal((await ask("POST", "/models", key, wanted)).status, 200);
  // The two settings together: a model that came by a request leaves memory unused, and is back for its next one.
  await until("it to be unloaded", async () => (await ask("GET", "/v1/models/a", key)).json().state === "unloaded", 60);
  assert.equal(sha256((await ask("POST", "/models/a/invoke", key, say)).body), spoken);
  await until("it to be unloaded", async () => (await ask("GET", "/v1/models/a", key)).json().state === "unloaded", 60);
  assert.equal((await ask("DELETE", "/models/a", key)).status, 200);
  assert.equal((await ask("POST", "/models", key, wanted)).status, 200);
}));

test("the platform's variable opens these routes for its own folder", withServer({ env: { ...env, SAGEMAKER_MULTI_MODEL: "true" } }, async (other) => {
  assert.deepEqual((await other.http.get("/models")).json(), { models: [] });
  assert.equal((await other.http.post("/models", { model_name: "a", url: url("a") })).status >= 400, true);
}));

test("without the setting they are refused by name", withServer({ env: { ...env, SAGEMAKER_MULTI_MODEL: "false" } }, async (other) => {
  for (const [method, path] of [["GET", "/models"], ["DELETE", "/models/a"], ["POST", "/models"], ["POST", "/models/a/invoke"]]) {
    const answer = await other.http.ask(method, path, {});
    assert.equal(answer.status, 404);
    assert.match(answer.text(), /--models-root/);
  }
}));
