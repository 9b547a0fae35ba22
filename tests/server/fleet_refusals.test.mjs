// What a fleet refuses: one sentence, exit code 2, nothing left running. And sections of workers in its file.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { allReady, Fleet, ready, unbalanced, without } from "./fleet_harness.mjs";
import { environment, program, slowness, until } from "./harness.mjs";
import { freePorts, listen } from "./ports.mjs";

const dir = mkdtempSync(join(tmpdir(), "shoal_refusals_"));
after(() => rmSync(dir, { recursive: true, force: true }));
const file = (name, text, mode = 0o644) => {
  const path = join(dir, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};

// Processes that inherited this variable from a fleet.
const left = (mark) => readdirSync("/proc").filter((pid) => {
  try {
    return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark);
  } catch {
    return false;
  }
});

let runs = 0;
async function refused(flags, sentence, command = "fleet", env = {}) {
  const mark = `FLEET_OF_A_TEST=${process.pid}.${++runs}`;
  const base = await freePorts(3);
  const own = command === "fleet" && !flags.includes("--listen") ? ["--listen", `127.0.0.1:${base + 2}`] : [];
  const placed = flags.includes("--base-port") ? flags : ["--base-port", String(base), ...flags];
  const child = spawn(program, [command, "--cache-dir", join(dir, "cache"), ...own, ...placed], { env: environment({ ...env, FLEET_OF_A_TEST: mark.split("=")[1] }), stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (log += text));
  const code = await new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  assert.equal(code, 2, `${flags}: ${log}`);
  assert.match(log, sentence);
  assert.equal(log.match(/^shoal: .*\n/gm).length, 1, log);
  assert.deepEqual(left(mark), [], `${flags} left processes`);
  for (let i = 0; i < 3; i++) (await listen(base + i)).close();
  return log;
}
const cpu = ["--devices", "cpu", "--per-device", "2"];
const refusal = (name, body) => test(name, { timeout: 120_000 * slowness }, body);

refusal("ports that are taken", async () => {
  const base = await freePorts(2);
  const other = (await listen(base + 1)).unref();
  await refused([...cpu, "--base-port", String(base), ...unbalanced], new RegExp(`^shoal: base_port: port ${base + 1} of w2 cannot be used: Address already in use\n$`));
  if (!without) await refused([...cpu, "--listen", `127.0.0.1:${base + 1}`], new RegExp(`^shoal: listen: port ${base + 1} of balancer cannot be used: Address already in use\n$`));
  await refused([...cpu, ...unbalanced, "--operator-listen", `127.0.0.1:${base + 1}`], /^shoal: operator_listen: .*in use.*\n$/);
  other.close();
});

refusal("more workers than memory, and settings that no worker accepts", async () => {
  const free = JSON.parse(execFileSync(program, ["inspect", "--memory", "--json", "--device", "cpu"], { env: environment() })).available_bytes;
  const most = ["--model", "random:s1-mini", "--max-batch-size", free > 60e9 ? "1024" : "32", "--kv-memory-mb"];
  const share = Math.floor(free / 2 ** 20 * 0.52);
  const tooMuch = /^shoal: memory: 2 workers on cpu would need at least [\d.]+ GB, and [\d.]+ GB are free; expected fewer workers, or less for each \(max_batch_size, kv_memory_mb\)\n$/;
  await refused([...cpu, ...unbalanced, ...most, String(share)], tooMuch);
  await refused(["--workers", "2", "--device", "cpu", ...most, String(share)], tooMuch, "serve");
  await refused([...cpu, ...unbalanced, ...most, "16777216"], /^shoal: w1 cannot run: kv_memory_mb: 16777216 MiB are asked for, but only \d+ MiB are free.*\n$/);
  await refused([...cpu, ...unbalanced, "--model", "/no/such/model"], /^shoal: w1 refuses its settings: model folder .*\n$/);
  await refused(["--devices", "cuda:99", ...unbalanced], /^shoal: devices: cuda:99 does not exist; this machine has \d+ GPUs\n$/);
  // A GPU that is listed and cannot be asked.
  await refused(["--devices", "cuda:0", "--per-device", "2", ...unbalanced], /^shoal: w1 (refuses its settings|cannot run): device: .*\n$/, "fleet", { CUDA_VISIBLE_DEVICES: "99" });
});

refusal("unknown strategies and TLS files that are none", async () => {
  const other = file("words.txt", "No certificate.\n");
  await refused([...cpu, "--strategy", "luck"], /^shoal: strategy: expected least-connections, round-robin or voice, got "luck"\n$/);
  if (without) return;
  for (const [certificate, sentence] of [[join(dir, "nothing.pem"), /^shoal: tls_certificate: .*No such file.*\n$/], [other, /^shoal: tls_certificate: .*expected a chain of certificates.*\n$/]])
    await refused([...cpu, "--tls-certificate", certificate, "--tls-key", certificate], sentence);
  await refused([...cpu, "--tls-certificate", other], /^shoal: tls_key: expected a file/);
});

refusal("a balancer that is no program, or ends at once", async () => {
  await refused([...cpu, "--haproxy", file("data", "#!/bin/sh\nexit 0\n")], /^shoal: haproxy: .*cannot be executed/);
  await refused([...cpu, "--haproxy", file("no", "#!/bin/sh\nexit 1\n", 0o755)], /^shoal: haproxy: .*does not accept the configuration: exit code 1\n$/);
  await refused([...cpu, "--haproxy", file("rubbish", "\x7fELF no\n", 0o755)], /^shoal: haproxy: .*does not accept the configuration: exit code 127\n$/);
  const gone = file("gone", '#!/bin/sh\ncase "$*" in *-c*) exit 0;; esac\necho "no sockets today" >&2\nexit 3\n', 0o755);
  await refused([...cpu, "--haproxy", gone], /^shoal: haproxy: ended at once with exit code 3: no sockets today\n$/m);
  await refused([...cpu, "--haproxy", "/bin/true"], /^shoal: haproxy: ended at once with exit code 0\n$/m);
});

refusal("sections of the file that no worker can have", async () => {
  for (const [text, sentence] of [
    ["[workers.w3]\nmax_queue = 1\n", /\.toml:2: \[workers\.w3\]: there is no such worker; the fleet has 2, from w1 on\n$/],
    ["[workers.w1]\ndevice = \"cpu\"\n", /\.toml:2: device: cannot stand in \[workers\.w1\]: it is the fleet's own, or the same for all workers\n$/],
    ["[workers.w1]\nlisten = \"127.0.0.1:1\"\n", /:2: listen: cannot stand/],
    ["[workers.w2]\n\napi_key = \"secret-9\"\n", /:3: api_key: cannot stand/],
    ["[workers.w2]\nmax_queue = 0\n", /max_queue: expected 1 to \d+, got 0 .*\.toml:2\)?\n$/],
    ["[workers.w2]\nkv_memory_mb = 0\n", /workers\.w2\.kv_memory_mb: 0 leaves the size to the fleet/],
    ["[workers.w2]\nmax_quee = 1\n", /:2: there is no setting "max_quee"; the nearest is max_queue\n$/],
    ["[workers.w2]\nmodel = \"/no/such\"\n", /^shoal: w2 refuses its settings: model folder/],
    ["[workers]\nw1 = 1\n", /:1: "\[workers\]" opens a table/],
  ]) assert.doesNotMatch(await refused([...cpu, ...unbalanced, "--config", file("a.toml", text)], sentence), /secret-9/);
});

test("a worker's section counts for that worker alone, also after SIGHUP and reload", { timeout: 120_000 * slowness, skip: without }, async () => {
  const config = file("b.toml", "max_queue = 9\n[workers.w2]\nweb_page = false\nkv_memory_mb = 7\n");
  const fleet = await Fleet.start(2, ["--config", config, "--admin-key", "k", "--web-page"]);
  const pages = async () => Promise.all(fleet.http.map(async (http) => (await http.get("/")).status));
  const shares = () => [0, 1].map((worker) => readFileSync(`/proc/${fleet.pid(worker)}/cmdline`, "utf8").match(/--kv-memory-mb=(\d+)/)?.[1]);
  assert.deepEqual(await pages(), [200, 404]);
  assert.ok(Number(shares()[0]) > 0 && shares()[1] === undefined, `${shares()}`);
  await ready(fleet);
  await allReady(fleet);
  const answer = await fleet.front.post("/v1/admin/reload", { max_queue: 3, web_page: true }, { headers: { authorization: "Bearer k" } });
  assert.equal(answer.status, 202, answer.text());
  await until("the reload", () => /rolling reload: done/.test(fleet.log), 60);
  assert.deepEqual(await pages(), [200, 404]);
  assert.ok(Number(shares()[0]) > 0 && shares()[1] === undefined, `${shares()}`);
  writeFileSync(config, "[workers.w7]\nmax_queue = 1\n");
  fleet.child.kill("SIGHUP");
  await until("the refusal", () => /SIGHUP: .*no such worker.*the fleet goes on as it was/.test(fleet.log));
  writeFileSync(config, "max_quee = 1\n");
  process.kill(fleet.pid(0), "SIGKILL");  // it is tried until it can start; the fleet goes on
  await until("w1 to refuse the file", () => /w1 \| .*there is no setting "max_quee"/.test(fleet.log), 30);
  writeFileSync(config, "[workers.w1]\nweb_page = false\n");
  await until("w1", () => fleet.http[0].get("/ready").then((answer) => answer.status === 200, () => false), 30);
  await until("the supervisor to see it", async () => (await fleet.front.get("/v1/health")).json().workers?.ready === 2, 30);
  fleet.child.kill("SIGHUP");
  await until("the rolling restart", () => /rolling restart: done/.test(fleet.log), 60);
  assert.deepEqual(await pages(), [404, 200]);
  assert.equal(await fleet.stop(), 0, fleet.log);
});
