// What deploy/ gives to Prometheus and Grafana, tried with a real Prometheus that scrapes a server.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sharedServer, until } from "./harness.mjs";
import { freePorts } from "./ports.mjs";

const deploy = fileURLToPath(new URL("../../deploy/", import.meta.url));
const server = sharedServer({ before, after });
const installed = !spawnSync("prometheus", ["--version"]).error;
const skip = installed ? false : "Prometheus is not installed";
const dashboard = JSON.parse(readFileSync(join(deploy, "grafana/shoal.json"), "utf8"));

async function answer(port, path, parameters) {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters)}`);
  return response.json();
}

// The folder that compose gives to Prometheus, with this server in place of its own.
function prometheusFolder() {
  const folder = join(server().dir, "prometheus");
  mkdirSync(folder);
  const config = readFileSync(join(deploy, "prometheus/prometheus.yml"), "utf8");
  assert.match(config, /"shoal:8080"/);
  writeFileSync(join(folder, "prometheus.yml"),
    config.replace("shoal:8080", `127.0.0.1:${server().port}`).replace("scrape_interval: 5s", "scrape_interval: 250ms"));
  writeFileSync(join(folder, "rules.yml"), readFileSync(join(deploy, "prometheus/rules.yml")));
  return folder;
}

test("promtool accepts the configuration and the alerts", { skip }, () => {
  const checked = spawnSync("promtool", ["check", "config", join(deploy, "prometheus/prometheus.yml")], { encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
  assert.match(checked.stdout, /6 rules found/);
});

test("every query of the dashboard and every alert has an answer", { skip }, async () => {
  const folder = prometheusFolder();
  const port = await freePorts(1);
  const prometheus = spawn("prometheus", [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`], { stdio: "ignore" });
  try {
    await until("Prometheus", async () => (await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => ({}))).status === 200, 60);
    // Rates need two scrapes with a request between them.
    await until("a scrape", async () => (await answer(port, "query", { query: "shoal_ready" })).data.result.length === 1, 60);
    for (const seed of [1, 2]) {
      await server().http.post("/v1/audio/speech", { model: "tts-1", voice: "alloy", input: "Good morning to everybody.", seed });
    }
    const filled = (expr) => expr.replaceAll("$instance", ".*").replaceAll("$__rate_interval", "1m");
    for (const { title, targets } of dashboard.panels) {
      for (const { expr } of targets) {
        await until(`a figure for ${title}: ${expr}`, async () => {
          const { error, data } = await answer(port, "query", { query: filled(expr) });
          assert.equal(error, undefined, title);
          return data.result.length > 0 && data.result.every(({ value }) => value[1] !== "NaN");
        });
      }
    }
    const { data } = await answer(port, "rules", {});
    assert.equal(data.groups[0].rules.length, 6);
    for (const rule of data.groups[0].rules) assert.notEqual(rule.health, "err", rule.lastError);
  } finally {
    prometheus.kill();
  }
});
