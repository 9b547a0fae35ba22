// The report of `shoal bench` in Chromium: what it shows is what the run's folder says.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { environment, program } from "../server/harness.mjs";
import { Browser, browserMissing, screenshot, tooFaint } from "./browser.mjs";

const folder = mkdtempSync(join(tmpdir(), "shoal_report_"));
after(() => rmSync(folder, { recursive: true, force: true }));

function bench(...args) {
  return new Promise((resolve) => {
    execFile(program, ["bench", ...args], { env: environment(), cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
}
const json = (...names) => JSON.parse(readFileSync(join(folder, ...names)));

// Speech of a server whose timing is known: half a second of a tone in five pieces. One answer in `dropEvery` breaks.
async function fakeServer({ wait_ms = 20, gap_ms = 15, dropEvery = Infinity } = {}) {
  const kRate = 24_000;
  const pieces = Array.from({ length: 5 }, (_, piece) => {
    const samples = Buffer.alloc(kRate / 5);
    for (let i = 0; i < samples.length / 2; ++i) samples.writeInt16LE(Math.round(9000 * Math.sin((i + piece) / 5)), 2 * i);
    return samples;
  });
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  let asked = 0;
  const server = createServer(async (request, response) => {
    const number = ++asked;
    request.resume();
    await sleep(wait_ms);
    response.writeHead(200, { "content-type": "audio/pcm", "x-sample-rate": String(kRate) });
    for (const [i, piece] of pieces.entries()) {
      if (i === 3 && number % dropEvery === 0) return response.destroy();
      response.write(piece);
      await sleep(gap_ms);
    }
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

async function load(server, output, ...flags) {
  const done = await bench("serve", server.url, "--format", "pcm", "--texts", "short", "--output", output, ...flags);
  assert.equal(done.code, 0, done.stderr);
}

async function openReport(browser, file, options) {
  const url = pathToFileURL(join(folder, file)).href;
  const page = await browser.page(url, options);
  await page.goto(url);
  await page.locator("figure svg").first().waitFor();
  return page;
}

function assertClean(page) {
  assert.deepEqual(page.complaints, []);
  assert.deepEqual(page.strangers, [], "requests that left the file");
}

// The rows of the table of a figure: the unrounded number of a cell, or its text.
function rowsOf(page, figure) {
  return page.locator(`#${figure} table`).evaluate((table) => [...table.tBodies[0].rows].map((row) =>
    Object.fromEntries([...row.cells].map((cell, i) =>
      [table.tHead.rows[0].cells[i].firstChild.textContent, cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value)]))));
}

const kLoadFigures = ["first-audio", "underruns", "latency", "throughput", "first-audio-curve", "latency-curve", "timeline"];
const kSuiteFigures = ["memory", "real-time-factor", "suite-latency", "warm-up", "capacity"];

// Columns of the tables, and where summary.json has their numbers.
const kLoadColumns = {
  "first-audio": { heard: "first_audible_ms count", mean: "first_audible_ms mean", p50: "first_audible_ms p50", p99: "first_audible_ms p99" },
  underruns: { completed: "requests completed", "dry, 50 ms": "underruns buffer_50ms requests", "underruns, 100 ms": "underruns buffer_100ms count", "silence, 100 ms": "underruns buffer_100ms dry_s" },
  latency: { p95: "latency_ms p95", max: "latency_ms max", "RTF p50": "real_time_factor p50" },
  throughput: { requests: "requests_per_s", "good requests": "goodput per_s", good: "goodput share", sound: "sound_s_per_s", characters: "characters_per_s" },
  "first-audio-curve": { "50 % within": "first_audible_ms p50", "100 %": "first_audible_ms max" },
  "latency-curve": { "99 % within": "latency_ms p99" },
  timeline: { took: "elapsed_s", begun: "requests begun", left: "requests left", failed: "requests failed", "client CPU": "client cpu_share" },
};
const kSuiteColumns = {
  memory: { "at rest": "memory rest_bytes", "at peak": "memory peak_bytes", loading: "load_s" },
  "real-time-factor": { "RTF p50": "real_time_factor p50", "tokens/s p95": "semantic_tokens_per_s p95", requests: "real_time_factor count" },
  "suite-latency": { characters: "texts short characters", p99: "texts short latency_ms p99", "first audio p50": "texts short first_audio_ms p50" },
  "warm-up": { "request 1": "warm_up_ms 0" },
  capacity: { sound: "sound_h_per_h", took: "batch elapsed_s", requests: "batch requests_per_s" },
};
const found = (json, path) => path.split(" ").reduce((at, name) => at?.[name], json);

async function assertNumbers(page, groups, columns) {
  for (const [figure, names] of Object.entries(columns)) {
    const rows = await rowsOf(page, figure);
    assert.equal(rows.length, groups.length, figure);
    for (const [name, path] of Object.entries(names)) {
      const expected = groups.map((group) => found(group, path));
      assert.ok(expected.every((value) => typeof value === "number"), `${figure}: ${path}`);
      assert.deepEqual(rows.map((row) => row[name]), expected, `${figure}: ${name}`);
    }
  }
}

// Each plot has marks of its own, and none that could not be placed.
async function assertDrawn(page, figures) {
  for (const figure of figures) {
    const plot = page.locator(`#${figure} .plot > svg`);
    await plot.waitFor();
    const marks = await plot.locator('[aria-label$="dot"], [aria-label$="line"], [aria-label$="bar"]').locator("circle, path, rect").count();
    assert.ok(marks > 0, `${figure} shows nothing`);
    assert.doesNotMatch(await plot.innerHTML(), /NaN|undefined|Infinity/, figure);
  }
}

describe("the report", { skip: browserMissing }, () => {
  let browser;
  before(async () => {
    const steady = await fakeServer();
    await load(steady, "run", "--concurrency", "1,2,4", "--requests", "12", "--slo", "ttfa_ms=200,underruns=0");
    steady.stop();
    const broken = await fakeServer({ gap_ms: 160, dropEvery: 7 });
    await load(broken, "worse", "--rate", "10,30", "--requests", "15", "--cancel", "20%");
    broken.stop();
    const suite = await bench("report", "--folder", "suite", "--json", "results.json", "--configurations", "f32,int8",
      "--texts", "short", "--num-samples", "3", "--batch-size", "2", "--warmup-runs", "1", "--threads", "1");
    assert.equal(suite.code, 0, suite.stderr);
    for (const said of [/^Shoal benchmark\ndevice: cpu\n/, /\[1\/2\] F32 \.\.\.\n/, /\[2\/2\] INT8 weights \.\.\.\n/, /2 in a row: /]) assert.match(suite.stdout, said);
    browser = await Browser.start();
  }, { timeout: 240_000 });
  after(() => browser?.stop(), { timeout: 60_000 });

  test("shows the numbers of summary.json", async () => {
    const page = await openReport(browser, "run/report.html");
    await assertNumbers(page, json("run", "summary.json").levels, kLoadColumns);
    await assertDrawn(page, kLoadFigures);
    assert.match(await page.locator("#settings").textContent(), /bench serve http:.* --concurrency 1,2,4/);
    assertClean(page);
    await page.close();
  });

  test("shows the suite, and results.json has the same", async () => {
    const page = await openReport(browser, "suite/report.html");
    const { configurations } = json("suite", "summary.json");
    assert.deepEqual(json("results.json").summary.configurations, configurations);
    assert.deepEqual(configurations.map(({ name, warm_up_ms, batch }) => [name, warm_up_ms.length, batch.requests]), [["F32", 1, 2], ["INT8 weights", 1, 2]]);
    await assertNumbers(page, configurations, kSuiteColumns);
    await assertDrawn(page, kSuiteFigures);
    await screenshot(page, "report_suite");
    assertClean(page);
    await page.close();
  });

  test("runs stand side by side, drawn again from their folders", async () => {
    const done = await bench("report", "run", "worse", "suite", "--output", "all.html");
    assert.equal(done.code, 0, done.stderr);
    const page = await openReport(browser, "all.html");
    await assertDrawn(page, [...kSuiteFigures, ...kLoadFigures]);
    const rows = await rowsOf(page, "first-audio");
    assert.deepEqual(new Set(rows.map(({ run }) => run)), new Set(["run", "worse"]));
    assert.match(await page.locator("#failures").textContent(), /cut_off/);
    await screenshot(page, "report_side_by_side");
    assertClean(page);
    await page.close();
  });

  test("a figure says its number under the pointer", async () => {
    const page = await openReport(browser, "run/report.html");
    const dot = page.locator("#first-audio circle").first();
    await dot.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await dot.boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.locator('#first-audio [aria-label="tip"] text').waitFor();
    assert.match(await page.locator('#first-audio [aria-label="tip"]').textContent(), /1 user.*p50: [\d.]+ ms/);
    assertClean(page);
    await page.close();
  });

  test("what a run's files say can only be read", async () => {
    const evil = `</script><img src=x onerror="window.hacked=1"><b>${"W".repeat(300)}`;
    cpSync(join(folder, "worse"), join(folder, "evil"), { recursive: true });
    const change = (file, edit) => {
      const path = join(folder, "evil", file);
      const content = JSON.parse(readFileSync(path));
      edit(content);
      writeFileSync(path, JSON.stringify(content));
    };
    change("run.json", (run) => Object.assign(run, { url: evil, command: [evil], machine: [], speech: { voices: evil }, seed: { a: 1 } }));
    change("summary.json", ({ levels }) => {
      levels[0].notes = [evil, 7];
      levels[0].failures = { [evil]: { count: 3, first: evil } };
      levels[1].latency_ms = "none";
    });
    assert.equal((await bench("report", "evil")).code, 0);
    const page = await openReport(browser, "evil/report.html", { width: 390 });
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("img[src=x], b").count(), 0);
    assert.match(await page.locator("#failures").textContent(), /<img src=x/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "too wide");
    assertClean(page);
    await page.close();
  });

  test("a run that failed says why", async () => {
    assert.equal((await bench("serve", "http://127.0.0.1:9", "--output", "failed")).code, 1);
    const page = await browser.page("file:");
    await page.goto(pathToFileURL(join(folder, "failed", "report.html")).href);
    assert.match(await page.locator(".note").textContent(), /The run failed: http:.*cannot connect/);
    assertClean(page);
    await page.close();
  });

  test("on paper it is light and whole", async () => {
    const page = await openReport(browser, "run/report.html", { colorScheme: "dark" });
    await page.emulateMedia({ media: "print" });
    await page.setViewportSize({ width: 700, height: 1000 });
    await assertDrawn(page, kLoadFigures);
    const [ink, ground] = await page.evaluate(() => [getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]);
    assert.deepEqual([ink, ground], ["rgb(16, 34, 42)", "rgb(255, 255, 255)"]);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "too wide for the paper");
    await screenshot(page, "report_print");
    assertClean(page);
    await page.close();
  });

  for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]]) {
    test(`looks right: ${colorScheme}, ${width} pixels wide`, async () => {
      const page = await openReport(browser, "run/report.html", { colorScheme, width, height: width > 600 ? 1000 : 844 });
      await assertDrawn(page, kLoadFigures);
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(Number(ground.match(/\d+/)[0]) > 127, colorScheme === "light", ground);
      await screenshot(page, `report_${colorScheme}_${width}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} pixels too wide`);
      assert.deepEqual(await page.evaluate(tooFaint), []);
      assertClean(page);
      await page.close();
    });
  }
});

describe("shoal bench report", () => {
  for (const [what, args, said] of [
    ["a folder that is no run", ["/"], /it has no run\.json/],
    ["a folder that is not there", ["nowhere"], /there is no such folder/],
    ["several runs without a file for them", ["run", "run"], /output: expected a file/],
    ["a configuration that nobody knows", ["--configurations", "int3"], /configurations: expected bf16/],
    ["folders and a suite", ["run", "--num-samples", "3"], /expected one of them/],
  ]) {
    test(`refuses ${what}`, async () => {
      const done = await bench("report", ...args);
      assert.equal(done.code, 2, done.stderr);
      assert.match(done.stderr, said);
    });
  }
});
