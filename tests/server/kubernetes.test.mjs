// The files of deploy/kubernetes: rendered by kustomize, checked against the published schemas, and the end of a pod
// played with the signals and in the order of a real one.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { clientsDir } from "./clients.mjs";
import { Server, environment, program, until } from "./harness.mjs";

const folder = fileURLToPath(new URL("../../deploy/kubernetes/", import.meta.url));
const kubectl = spawnSync("kubectl", ["version", "--client"], { encoding: "utf8" });
const kustomize = Number(kubectl.stdout?.match(/Kustomize Version: v(\d+)/)?.[1] ?? 0);
const skip = kustomize >= 5 ? false : "there is no kubectl with kustomize 5";
const overlays = readdirSync(join(folder, "overlays"));
const require = createRequire(join(clientsDir, "package.json"));
const { parseAllDocuments } = require("yaml");

function rendered(overlay) {
  const done = spawnSync("kubectl", ["kustomize", join(folder, overlay)], { encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  assert.equal(done.stderr, "", "kustomize warns");
  return parseAllDocuments(done.stdout).map((document) => document.toJS());
}

async function modelOf({ apiVersion, kind }) {
  const packages = { "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator", "keda.sh/v1alpha1": "@kubernetes-models/keda" };
  const index = join(clientsDir, "node_modules", packages[apiVersion] ?? "kubernetes-models", apiVersion, "index.js");
  return (await import(pathToFileURL(index).href))[kind];
}

// The published validators accept fields that they do not know. They read those that they know: what nobody reads is
// unknown.
function watched(value, path, unread, shown = new Map()) {
  if (typeof value !== "object" || value === null) return value;
  if (shown.has(value)) return shown.get(value);
  for (const key of Object.keys(value)) unread.add(`${path}/${key}`);
  const proxy = new Proxy(value, {
    get(target, key) {
      unread.delete(`${path}/${String(key)}`);
      return watched(target[key], `${path}/${String(key)}`, unread, shown);
    },
  });
  shown.set(value, proxy);
  return proxy;
}

async function problemsOf(object) {
  const unread = new Set();
  const Model = await modelOf(object);
  assert.ok(Model, `${object.apiVersion} ${object.kind} is no published kind`);
  try {
    Model.prototype.validate.call(watched(object, "", unread));
  } catch (error) {
    return [error.message];
  }
  return [...unread].map((path) => `${path} is no field of ${object.kind}`);
}

test("the check finds what is wrong", async () => {
  const service = (extra) => ({ apiVersion: "v1", kind: "Service", metadata: { name: "a" }, spec: { ports: [{ port: 80 }] }, ...extra });
  assert.deepEqual(await problemsOf(service()), []);
  assert.match((await problemsOf(service({ spec: { ports: [{ port: "eighty" }] } }))).join(), /port/);
  assert.match((await problemsOf(service({ spec: { ports: [{ port: 80, prot: "TCP" }] } }))).join(), /prot is no field/);
  assert.match((await problemsOf(service({ specs: {} }))).join(), /specs is no field/);
});

for (const overlay of ["base", ...overlays.map((name) => `overlays/${name}`)]) {
  test(`${overlay} is what the published schemas allow`, { skip }, async () => {
    const objects = rendered(overlay);
    for (const object of objects) assert.deepEqual(await problemsOf(object), [], `${object.kind} ${object.metadata.name}`);
    const pods = objects.filter(({ kind }) => kind === "Deployment").map(({ spec }) => spec.template.metadata.labels);
    const matches = (selector) => pods.filter((labels) => Object.entries(selector).every(([name, value]) => labels[name] === value)).length;
    for (const { kind, metadata, spec } of objects) {
      if (!["Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"].includes(kind)) continue;
      const selector = kind === "Service" ? spec.selector : (spec.selector ?? spec.podSelector).matchLabels;
      assert.ok(selector && Object.keys(selector).length > 0, `${kind} ${metadata.name} selects everything`);
      assert.equal(matches(selector), 1, `${kind} ${metadata.name} selects pods of one kind`);
    }
  });

  test(`${overlay} sets what the program knows, and its times fit`, { skip }, () => {
    const { spec } = rendered(overlay).find(({ kind, metadata }) => kind === "Deployment" && metadata.name === "shoal");
    const pod = spec.template.spec;
    const [container] = pod.containers;
    const plain = Object.fromEntries(container.env.filter(({ value }) => value !== undefined).map(({ name, value }) => [name, value]));
    const { status, stdout, stderr } = spawnSync(program, ["serve", "--print-config"], { encoding: "utf8", env: environment(plain) });
    assert.equal(status, 0, stderr);
    const grace = Number(stdout.match(/^grace_s = (\d+)/m)[1]);
    assert.ok(container.lifecycle.preStop.sleep.seconds + grace + 3 <= pod.terminationGracePeriodSeconds);
    assert.ok(container.startupProbe.periodSeconds * container.startupProbe.failureThreshold >= 600, "a model of 9 GB may take its time");
  });
}

// No schema of KServe's is published where these tests look: the pod within is checked, and the contract's names.
test("KServe's predictor is a pod that the published schemas allow", async () => {
  const { apiVersion, kind, spec: { predictor } } = parseAllDocuments(readFileSync(join(folder, "../kserve/inference-service.yaml"), "utf8"))[0].toJS();
  assert.equal(`${apiVersion} ${kind}`, "serving.kserve.io/v1beta1 InferenceService");
  const { minReplicas, maxReplicas, timeout, ...pod } = predictor;
  assert.ok(minReplicas <= maxReplicas && timeout > 0);
  assert.deepEqual(await problemsOf({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: pod }), []);
  const [container] = pod.containers;
  assert.equal(container.name, "kserve-container");
  for (const probe of ["startupProbe", "readinessProbe"]) assert.equal(container[probe].httpGet.path, "/v2/health/ready");
  const env = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
  assert.equal(spawnSync(program, ["serve", "--print-config"], { env: environment(env) }).status, 0);
  assert.ok(container.lifecycle.preStop.sleep.seconds + Number(env.SHOAL_GRACE_S) + 3 <= pod.terminationGracePeriodSeconds);
});

test("HAProxy accepts the balancer's configuration", (t) => {
  if (spawnSync("haproxy", ["-v"]).error) return t.skip("HAProxy is not installed");
  const checked = spawnSync("haproxy", ["-c", "-f", join(folder, "overlays/fleet/haproxy.cfg")], { encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stderr);
});

// While preStop sleeps requests still come, because not everybody knows that the pod ends. Then SIGTERM, and
// SIGKILL when terminationGracePeriodSeconds are over.
test("a pod that ends answers everything that reached it, and needs no SIGKILL", async () => {
  const server = await Server.start({ flags: ["--grace-s", "30"] });
  const say = (seed) => server.http.post("/v1/audio/speech", { model: "tts-1", voice: "alloy", input: "Good morning to everybody who listens.", seed });
  const before = await server.submitted();
  const answers = [];
  const began = Date.now();
  for (let i = 0; Date.now() - began < 1500; ++i) {
    answers.push(say(i));
    await sleep(100);
  }
  const late = [say(1), server.http.post("/v1/audio/speech", { model: "tts-1", voice: "alloy", input: "A long text goes on. ".repeat(20) })];
  await until("all to be inside", async () => (await server.submitted()) === before + answers.length + late.length);
  server.child.kill("SIGTERM");
  for (const answer of await Promise.all([...answers, ...late])) assert.equal(answer.status, 200);
  await Promise.race([server.exited, sleep(35_000)]);
  assert.equal(server.code, 0);
});
