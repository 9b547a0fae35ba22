// RunPod and Vertex AI, played by what they document: variables, ports, health checks and bodies.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server, environment, program, until } from "./harness.mjs";
import { Http, sha256 } from "./http.mjs";
import { freePorts } from "./ports.mjs";

const deploy = (name) => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url));
const say = { model: "tts-1", voice: "alloy", input: "Good morning.", seed: 1, response_format: "wav", max_new_tokens: 20 };

// A server without --listen, as an image starts it. use(child) may ask; then SIGTERM must end it in order.
async function started(env, use, command = [program, "serve"]) {
  const child = spawn(command[0], command.slice(1), {
    env: environment({ SHOAL_CACHE_DIR: "none", SHOAL_LISTEN: "127.0.0.1:8080", ...env }), stdio: ["ignore", "pipe", "pipe"],
  });
  process.on("exit", () => child.kill("SIGKILL"));
  child.log = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (child.log += text));
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  try {
    return await use(child);
  } finally {
    child.kill("SIGTERM");
    assert.equal(await ended, 0, child.log);
  }
}

// What the platform's balancer sees of /ping until it is healthy: the statuses, each once.
async function pings(http, child) {
  const seen = [];
  await until("a healthy worker", async () => {
    assert.equal(child.exitCode, null, child.log);
    const { status, body } = await http.get("/ping").catch(() => ({}));
    if (status === 204) assert.equal(body.length, 0);
    if (status && status !== seen.at(-1)) seen.push(status);
    return status === 200;
  }, 120);
  return seen;
}

// A server that is first seen while it loads, by the status `loading`. On a busy machine it may be ready before anybody
// asks: then another one is started.
async function seenLoading(loading, env, use, port = env.PORT) {
  for (let attempt = 1; ; ++attempt) {
    const wasSeen = await started(env, async (child) => {
      const statuses = await pings(new Http(Number(port)), child);
      if (statuses.length === 1 && attempt < 5) return false;
      assert.deepEqual(statuses, [loading, 200]);
      await use(child);
      return true;
    });
    if (wasSeen) return;
  }
}

test("RunPod's balancer sees a worker load, be healthy, speak and go", async () => {
  const [port, health] = [await freePorts(1), await freePorts(1)];
  await seenLoading(204, { PORT: String(port), PORT_HEALTH: String(health), RUNPOD_POD_ID: "a1b2" }, async () => {
    const [front, checks] = [new Http(port), new Http(health)];
    assert.equal((await front.get("/ping")).status, 200, "at the first port, too");
    const spoken = await front.post("/v1/audio/speech", say);
    assert.equal(spoken.status, 200, spoken.text());
    assert.equal((await checks.post("/v1/audio/speech", say)).status, 404, "the second port is for checks alone");
    const streamed = await front.post("/v1/audio/speech", { ...say, input: "A longer text. ".repeat(8) });
    assert.ok(streamed.chunks.length > 1);
  }, health);
});

test("without PORT_HEALTH, or with the same, one port does both", async () => {
  for (const more of [{ RUNPOD_ENDPOINT_ID: "e" }, { PORT_HEALTH: "same" }]) {
    const port = String(await freePorts(1));
    if (more.PORT_HEALTH) more.PORT_HEALTH = port;
    await seenLoading(204, { PORT: port, ...more }, (child) => {
      assert.doesNotMatch(child.log, /operators are answered/);
    });
  }
});

test("elsewhere a server that loads is not healthy, and shoal ready asks at $PORT", async () => {
  const env = { PORT: String(await freePorts(1)) };
  await seenLoading(503, env, () => {
    const asked = spawnSync(program, ["ready"], { encoding: "utf8", env: environment(env) });
    assert.equal(asked.status, 0, asked.stderr);
  });
});

test("a port that is none is refused, with the variable's name", () => {
  for (const name of ["PORT", "PORT_HEALTH", "AIP_HTTP_PORT"]) {
    const { status, stderr } = spawnSync(program, ["serve"], { encoding: "utf8", env: environment({ [name]: "http" }) });
    assert.equal(status, 2);
    assert.match(stderr, new RegExp(`expected a port.*${name}`));
  }
});

test("the templates set what the program knows, and expose the ports that it listens on", () => {
  for (const file of ["runpod/pod.json", "runpod/load-balancing.json"]) {
    const template = JSON.parse(readFileSync(deploy(file), "utf8"));
    const shown = spawnSync(program, [...template.dockerStartCmd, "--print-config"], {
      encoding: "utf8", env: environment({ ...template.env, SHOAL_LISTEN: "0.0.0.0:8080", SHOAL_API_KEY: "k", RUNPOD_POD_ID: "x" }),
    });
    assert.equal(shown.status, 0, shown.stderr);
    const ports = [...shown.stdout.matchAll(/^(?:operator_)?listen = "0\.0\.0\.0:(\d+)"/gm)].map((match) => `${match[1]}/http`);
    assert.deepEqual(ports.toSorted(), template.ports.toSorted());
    assert.match(shown.stdout, /^ping_tells_loading = true/m);
    assert.equal(template.env.SHOAL_API_KEY === undefined, template.isServerless === true, "RunPod's own key guards its balancer");
  }
});

test("setup.sh measures, then serves at $PORT", async () => {
  const port = await freePorts(1);
  const command = [deploy("runpod/setup.sh"), "--program", program, "--bench", "--text Hi.", "--log-format", "json"];
  await started({ PORT: String(port) }, async (child) => {
    assert.deepEqual((await pings(new Http(port), child)).at(-1), 200);
    const [version, bench, serve] = [/^shoal \d/m, /benchmark of [\s\S]*real time/, /listening on/].map((mark) => child.log.search(mark));
    assert.ok(version >= 0 && version < bench && bench < serve, child.log);
  }, command);
});

const vertex = { AIP_HTTP_PORT: "", AIP_HEALTH_ROUTE: "/v1/endpoints/7/deployedModels/8", AIP_PREDICT_ROUTE: "/v1/endpoints/7/deployedModels/8:predict" };

test("Vertex AI finds its port, its health route and its predictions", async () => {
  const port = await freePorts(1);
  await started({ ...vertex, AIP_HTTP_PORT: String(port) }, async (child) => {
    const http = new Http(port);
    const seen = new Set();
    await until("health", async () => {
      const { status } = await http.get(vertex.AIP_HEALTH_ROUTE).catch(() => ({}));
      if (status) seen.add(status);
      return status === 200;
    }, 120);
    assert.deepEqual([...seen].filter((status) => status !== 200 && status !== 503), []);

    const predict = (body) => http.post(vertex.AIP_PREDICT_ROUTE, body);
    const instances = [{ text: "One fish.", seed: 1 }, { text: "" }, { text: "Two fish.", voice: "no-such-voice" }, { text: "One fish.", seed: 1 }];
    const answer = await predict({ instances, parameters: { format: "pcm", max_new_tokens: 20 } });
    assert.equal(answer.status, 200, answer.text());
    const { predictions } = answer.json();
    assert.deepEqual(predictions.map(({ success }) => success), [true, false, false, true], answer.text().slice(0, 400));
    const sounds = [0, 3].map((i) => Buffer.from(predictions[i].audio_base64, "base64"));
    assert.ok(sounds[0].length > 4000);
    assert.equal(sha256(sounds[0]), sha256(sounds[1]));
    const plain = await http.post("/v1/tts/batch", { items: [instances[0]], format: "pcm", max_new_tokens: 20 });
    assert.equal(plain.json().results[0].audio_base64, predictions[0].audio_base64, "as the batch says it");

    for (const [body, word] of [[{}, "instances"], [{ instances: [] }, "instances"], [{ instances: "a" }, "instances"],
      [{ instances, text: "a" }, "text"], [{ instances, parameters: [] }, "parameters"], [[1], "object"],
      [{ instances, parameters: { sed: 1 } }, "sed"], [{ instances, parameters: { instances } }, "instances"],
      [{ instances: Array(65).fill(instances[0]) }, "instances"]]) {
      const refused = await predict(body);
      assert.equal(refused.status, 400, refused.text());
      assert.match(refused.json().error.message, new RegExp(word));
    }
    assert.equal((await http.get(vertex.AIP_PREDICT_ROUTE)).status, 405);
    assert.equal((await http.post(vertex.AIP_PREDICT_ROUTE, "x", { headers: { "content-type": "text/plain" } })).status, 415);
  });
});

test("Vertex AI may ask at paths that are there anyway", async () => {
  const server = await Server.start({ env: { AIP_HEALTH_ROUTE: "/ready", AIP_PREDICT_ROUTE: "/v1/audio/speech" } });
  try {
    assert.equal((await server.http.get("/ready")).json().ready, true);
    assert.equal((await server.http.post("/v1/audio/speech", say)).type, "audio/wav");
    const { paths } = (await server.http.get("/openapi.json")).json();
    assert.deepEqual(Object.keys(paths["/ready"]), ["get"]);
  } finally {
    await server.stop();
  }
});
