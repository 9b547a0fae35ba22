// The page at / in Chromium: heard, cloned, cancelled, used without a mouse.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { Server, until } from "../server/harness.mjs";
import { kokoroFlags, kokoroFolder } from "../server/kokoro_folder.mjs";
import { magic, readWav } from "../server/sound.mjs";
import { analysed, Browser, browserMissing, recorded, screenshot, tooFaint } from "./browser.mjs";
import { assertClean, assertHeard, idle, kLong, kShort, played, silent, speak, status } from "./visitor.mjs";

const kCancelled = /^Cancelled; \d+\.\d seconds can be played and saved$/;

describe("the page", { skip: browserMissing }, () => {
  let server;
  let browser;
  before(async () => {
    // One thread: a browser that shares two cores with the engine needs one to play in time.
    server = await Server.start({ flags: ["--threads", "1"] });
    browser = await Browser.start();
  }, { timeout: 240_000 });
  after(async () => {
    await browser?.stop();
    await server?.stop();
  }, { timeout: 120_000 });

  const whole = async (input, seed) =>
    (await server.http.post("/v1/audio/speech", { model: "shoal", voice: "default", input, seed, response_format: "wav", stream: false })).body;

  test("speaks with the built-in voice: the page plays exactly the sound of the server", async () => {
    const page = await browser.open(server.url);
    await page.getByLabel("random").uncheck();
    await page.getByLabel("Seed", { exact: true }).fill("7");
    await speak(page, kShort);
    await idle(page);
    let loudest = { rms: 0, speech: 0 };
    await played(page, async () => {
      const now = await analysed(page);
      if (now.rms > loudest.rms) loudest = now;
    });
    assert.ok(loudest.rms > 0.01, `only ${loudest.rms} loud`);
    assert.ok(loudest.speech > 0.5, `only ${loudest.speech} of it where speech is`);

    const { rate, samples } = readWav(await whole(kShort, 7));
    const ear = await recorded(page);
    assert.equal(ear.rate, rate);
    assertHeard(ear.samples, samples);
    assert.match(await page.locator("#first-audio").textContent(), /^\d+(\.\d+)? m?s$/);
    assert.ok(Number(await page.locator("#rtf").textContent()) > 0);
    assert.match(await status(page), /seconds of sound/);
    assertClean(page);
    await page.close();
  });

  test("playback begins long before the last sample has been made", async () => {
    const page = await browser.open(server.url);
    await speak(page, kLong);
    const early = await until("sound", async () => {
      const { rms } = await analysed(page);
      return rms > 0.003 && { busy: await page.evaluate(() => document.body.classList.contains("busy")) };
    }, 60);
    assert.ok(early.busy, "the answer had already ended when it was first heard");
    assert.ok((await server.speaking()) > 0);
    await page.getByRole("button", { name: "Cancel" }).first().click();
    await idle(page);
    assertClean(page);
    await page.close();
  });

  test("Cancel ends the request in the server too", async () => {
    const page = await browser.open(server.url);
    const cancelled = async () => (await server.metrics()).value("shoal_engine_requests_total", { outcome: "cancelled" });
    const earlier = await cancelled();
    await speak(page, kLong);
    await until("sound", async () => (await analysed(page)).rms > 0.003, 60);
    assert.equal(await status(page), "Speaking");
    await page.getByRole("button", { name: "Cancel" }).first().click();
    await until("nobody speaking", async () => (await server.speaking()) === 0, 10);
    await until("it to be counted", async () => (await cancelled()) === earlier + 1);
    assert.match(await status(page), kCancelled);
    assert.ok(await page.locator("#error").isHidden());
    await silent(page);
    assert.match(await status(page), kCancelled);
    await speak(page, kShort); // and on it goes
    await idle(page);
    assert.match(await status(page), /seconds of sound/);
    assertClean(page);
    await page.close();
  });

  test("clones a voice from an uploaded clip, and forgets it", async () => {
    const page = await browser.open(server.url);
    const clip = { name: "my clip.wav", mimeType: "audio/wav", buffer: await whole(kShort, 3) };
    await page.getByRole("button", { name: "Add a voice" }).click();
    const dialog = page.locator("#voice-dialog");
    await dialog.getByLabel("Recording").setInputFiles(clip);
    assert.equal(await dialog.getByLabel("Name").inputValue(), "my clip");
    await dialog.getByLabel("Name").fill("Quay");
    await dialog.getByLabel("Transcript").fill(kShort);
    await screenshot(page, "add_voice");
    await dialog.getByRole("button", { name: "Add voice" }).click();
    await dialog.waitFor({ state: "hidden" });
    const radio = page.getByRole("radio", { name: "Quay" });
    assert.ok(await radio.isChecked());
    const [row, list] = [await radio.boundingBox(), await page.locator("#voice-list").boundingBox()];
    assert.ok(row.y >= list.y && row.y + row.height <= list.y + list.height, "the new voice is out of sight");

    const asked = page.waitForRequest((request) => request.url().endsWith("/v1/audio/speech"));
    await speak(page, kShort);
    assert.equal((await asked).postDataJSON().voice, "Quay");
    await until("sound", async () => (await analysed(page)).rms > 0.003, 60);
    await idle(page);
    assert.match(await status(page), /seconds of sound/);

    await page.getByRole("button", { name: "Delete voice Quay" }).click();
    await page.getByRole("button", { name: "Keep" }).click();
    assert.equal(await page.getByRole("radio", { name: "Quay" }).count(), 1);
    await page.getByRole("button", { name: "Delete voice Quay" }).click();
    await page.locator("#delete-dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("radio", { name: "Quay" }).waitFor({ state: "detached" });
    assertClean(page);
    await page.close();
  });

  test("every format can be downloaded as a file of the same speech", async () => {
    const page = await browser.open(server.url);
    await speak(page, kShort);
    await idle(page);
    const seed = Number(await page.locator("#used-seed").textContent());
    const expected = await whole(kShort, seed);
    const { rate } = readWav(expected);
    for (const format of ["wav", "pcm", "flac", "mp3", "opus", "aac"]) {
      await page.getByText(format.toUpperCase(), { exact: true }).click();
      const waiting = page.waitForEvent("download");
      await page.getByRole("button", { name: `Download ${format.toUpperCase()}` }).click();
      const file = await waiting;
      assert.equal(file.suggestedFilename(), format === "pcm" ? `speech_s16le_${rate}hz.pcm` : `speech.${format}`);
      const bytes = readFileSync(await file.path());
      assert.ok(magic[format](bytes), `${format} begins with ${bytes.subarray(0, 8).toString("hex")}`);
      if (format === "wav") assert.deepEqual(readWav(bytes), readWav(expected));
      if (format === "pcm") assert.deepEqual(bytes, readWav(expected).pcm);
      await idle(page);
    }
    assertClean(page);
    await page.close();
  });

  test("sliders and seed reach the server; untouched ones are not sent", async () => {
    const page = await browser.open(server.url);
    const body = async () => {
      const asked = page.waitForRequest((request) => request.url().endsWith("/v1/audio/speech"));
      await speak(page, kShort);
      const sent = (await asked).postDataJSON();
      await idle(page);
      return sent;
    };
    const plain = await body();
    assert.deepEqual(Object.keys(plain).sort(), ["input", "model", "response_format", "seed", "voice"]);
    await page.getByLabel("Temperature", { exact: true }).fill("0.55");
    await page.getByLabel("Top-p", { exact: true }).fill("0.9");
    await page.getByLabel("Repetition penalty", { exact: true }).fill("1.25");
    await page.getByLabel("Max new tokens", { exact: true }).fill("512");
    await page.locator("#used-seed").click(); // keep it
    const set = await body();
    assert.equal(set.seed, plain.seed);
    assert.deepEqual([set.temperature, set.top_p, set.repetition_penalty, set.max_new_tokens], [0.55, 0.9, 1.25, 512]);
    await page.getByRole("button", { name: /Temperature.*back to the default/ }).click();
    assert.ok(!("temperature" in (await body())));
    assertClean(page);
    await page.close();
  });

  test("errors are told in the server's own words", async () => {
    const clip = await whole(kShort, 3);
    const voice = new FormData();
    for (const [name, value] of Object.entries({ id: "Gone", text: kShort, audio: new Blob([clip]) })) voice.append(name, value);
    assert.equal((await fetch(`${server.url}/v1/references/add`, { method: "POST", body: voice })).status, 200);
    const page = await browser.open(server.url);
    await page.getByRole("radio", { name: "Gone" }).check();
    const headers = { "Content-Type": "application/json" };
    const gone = await fetch(`${server.url}/v1/references/delete`, { method: "DELETE", headers, body: '{"reference_id":"Gone"}' });
    assert.equal(gone.status, 200);
    const refused = page.waitForResponse((response) => response.url().endsWith("/v1/audio/speech"));
    await speak(page, kShort);
    const { error } = await (await refused).json();
    const shown = page.locator("#error");
    await shown.waitFor();
    assert.equal(await shown.getAttribute("role"), "alert");
    assert.ok((await shown.textContent()).toLowerCase().includes(error.message.toLowerCase()), await shown.textContent());
    assert.match(await shown.textContent(), /Status 4\d\d, request [\w.-]+/);
    await screenshot(page, "error");

    await page.getByRole("button", { name: "Add a voice" }).click();
    const dialog = page.locator("#voice-dialog");
    await dialog.getByLabel("Recording").setInputFiles({ name: "x.wav", mimeType: "audio/wav", buffer: Buffer.alloc(500, 7) });
    await dialog.getByLabel("Transcript").fill("Seven, seven.");
    await dialog.getByRole("button", { name: "Add voice" }).click();
    await dialog.locator("#voice-error").waitFor();
    assert.match(await dialog.locator("#voice-error").textContent(), /audio/);
    await page.keyboard.press("Escape");
    assert.ok(await dialog.isHidden());

    await page.getByRole("radio", { name: "The model's own voice" }).check();
    await speak(page, kShort); // an error does not outlive its cause
    await idle(page);
    assert.ok(await shown.isHidden());
    assert.deepEqual(page.strangers, []);
    await page.close();
  });

  test("works without a mouse", async () => {
    const page = await browser.open(server.url);
    const focused = () => page.evaluate(() => document.activeElement.id);
    const tabTo = async (id) => {
      for (let i = 0; i < 60 && (await focused()) !== id; ++i) await page.keyboard.press("Tab");
      assert.equal(await focused(), id);
    };
    await tabTo("text");
    await page.keyboard.press("Control+A");
    await page.keyboard.type(kShort);
    await page.keyboard.press("Control+Enter");
    await until("sound", async () => (await analysed(page)).rms > 0.003, 60);
    await idle(page);
    await played(page);
    await tabTo("waveform");
    for (const label of ["Pause", "Play"]) {
      await page.keyboard.press("Space");
      await page.getByRole("button", { name: label, exact: true }).waitFor();
    }
    await page.keyboard.press("Home");
    const now = () => page.locator("#waveform").getAttribute("aria-valuenow").then(Number);
    assert.equal(await now(), 0);
    await page.keyboard.press("ArrowRight");
    assert.equal(await now(), 1);
    await tabTo("sampling-temperature");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#sampling-temperature").inputValue(), "0.81");
    await tabTo("random-seed");
    await page.keyboard.press("Space");
    await tabTo("format-wav");
    await page.keyboard.press("ArrowRight");
    await page.getByRole("button", { name: "Download MP3" }).waitFor();

    await page.locator("#text").fill(kLong);
    await page.locator("#text").press("Control+Enter");
    await page.waitForFunction(() => document.querySelector("#status").textContent === "Speaking");
    await page.keyboard.press("Escape");
    await idle(page);
    assert.match(await status(page), kCancelled);
    assertClean(page);
    await page.close();
  });

  test("every control has a name", async () => {
    const page = await browser.open(server.url);
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("input, select, textarea, button, canvas, [role=slider]")]
        .filter((e) => !e.closest("[role=img][aria-label]"))
        .filter((e) => !(e.labels?.length || e.getAttribute("aria-label") || (e.tagName === "BUTTON" && e.textContent.trim())))
        .map((e) => e.outerHTML));
    assert.deepEqual(nameless, []);
    assert.ok(await page.locator("#model-choice").isHidden(), "there is one model");
    await page.close();
  });

  test("shows live statistics", async () => {
    const page = await browser.open(server.url);
    const figure = (name) => page.locator("#server-figures div", { hasText: name }).locator("dd").textContent();
    await speak(page, kShort);
    await idle(page);
    await until("the figures to move", async () => Number((await figure("Requests completed")).replace(",", "")) > 0, 15);
    for (const name of ["Speaking", "Waiting", "First audio", "Real-time factor", "Sound made", "Memory", "Up"]) {
      assert.match(await figure(name), /\d/, name);
    }
    assert.equal(await page.locator(".chart canvas").count(), 2);
    assert.equal(await page.locator("#server-state").getAttribute("data-state"), "ready");
    assertClean(page);
    await page.close();
  });

  test("the page finds a server again that was away", async () => {
    const page = await browser.open(server.url);
    const state = (name) => page.waitForFunction((wanted) => document.querySelector("#server-state").dataset.state === wanted, name);
    await page.route("**/v1/**", (route) => route.abort("connectionrefused"));
    await state("away");
    await page.getByRole("button", { name: "Speak" }).click();
    await page.locator("#error").waitFor();
    assert.match(await page.locator("#error").textContent(), /does not answer. Check that “shoal serve” is still running/);
    const asked = page.waitForRequest((request) => request.url().endsWith("/v1/audio/voices"));
    await page.unroute("**/v1/**");
    await state("ready");
    await asked; // voices may have changed meanwhile
    await page.locator("#error").waitFor({ state: "hidden" });
    assert.match(await status(page), /answers again/);
    await speak(page, kShort);
    await idle(page);
    assert.match(await status(page), /seconds of sound/);
    await page.close();
  });

  for (const [colorScheme, width] of [1280, 390, 320].flatMap((w) => [["light", w], ["dark", w]])) {
    test(`looks right: ${colorScheme}, ${width} pixels wide`, async () => {
      const page = await browser.open(server.url, { colorScheme, width, height: width > 600 ? 1000 : 844 });
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const [red] = ground.match(/\d+/g).map(Number);
      assert.equal(red > 127, colorScheme === "light", ground);
      await speak(page, kShort);
      await idle(page);
      await played(page);
      for (const key of ["Home", "ArrowRight"]) await page.locator("#waveform").press(key);
      await screenshot(page, `${colorScheme}_${width}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} pixels too wide`);
      assert.deepEqual(await page.evaluate(tooFaint), []);
      assertClean(page);
      await page.close();
    });
  }
});

describe("the page of a server with two models", { skip: browserMissing }, () => {
  const kWords = "Hello there, the moon is cold. Hello there, the moon is cold and the fish swim under the moon.";
  let server;
  let browser;
  before(async () => {
    server = await Server.start({ flags: kokoroFlags(kokoroFolder(["af_one", "bm_two"])) });
    browser = await Browser.start();
  }, { timeout: 240_000 });
  after(async () => {
    await browser?.stop();
    await server?.stop();
  }, { timeout: 120_000 });
  const open = async (options) => {
    const page = await browser.open(server.url, options);
    await page.locator("#model-choice").waitFor();
    return page;
  };
  const choose = async (page, model, voice) => {
    await page.getByLabel("Model", { exact: true }).selectOption(model);
    await page.getByRole("radio", { name: voice, exact: true }).waitFor();
  };
  const body = async (page, text) => {
    const asked = page.waitForRequest((request) => request.url().endsWith("/v1/audio/speech"));
    await speak(page, text);
    const sent = (await asked).postDataJSON();
    await idle(page);
    assert.match(await status(page), /seconds of sound/);
    return sent;
  };

  test("voices, controls and figures are those of the chosen model", async () => {
    const page = await open();
    const seen = async (label) => page.getByLabel(label, { exact: true }).isVisible();
    assert.deepEqual(await page.locator("#model option").allTextContents(), ["shoal", "kokoro"]);
    assert.deepEqual([await seen("Temperature"), await seen("Speed")], [true, false]);
    assert.equal(await page.getByRole("radio", { name: "af_one" }).count(), 0);
    await page.getByLabel("Temperature", { exact: true }).fill("0.55");

    const figures = page.waitForRequest((request) => request.url().endsWith("/v1/stats?model=kokoro"));
    await choose(page, "kokoro", "af_one");
    await figures;
    assert.deepEqual([await seen("Temperature"), await seen("Top-p"), await seen("Speed")], [false, false, true]);
    assert.ok(await page.getByRole("button", { name: "Add a voice" }).isHidden(), "Kokoro follows no recordings");
    await page.getByRole("radio", { name: "bm_two" }).check();
    const plain = await body(page, kWords);
    assert.deepEqual(Object.keys(plain).sort(), ["input", "model", "response_format", "seed", "voice"]);
    assert.deepEqual([plain.model, plain.voice], ["kokoro", "bm_two"]);
    const length = async () => (await status(page)).match(/^[\d.]+/)[0];
    const usual = Number(await length());
    await page.getByLabel("Speed", { exact: true }).fill("0.25");
    const slow = await body(page, kWords);
    assert.equal(slow.speed, 0.25);
    assert.ok(!("temperature" in slow));
    assert.ok(Number(await length()) > 1.5 * usual, `${await length()} s, ${usual} s before`);
    assert.match(await page.locator("#curl").textContent(), /"model": "kokoro"[^]*"speed": 0.25/);
    await until("the figures to move", async () =>
      Number(await page.locator("#server-figures div", { hasText: "Requests completed" }).locator("dd").textContent()) > 1, 15);

    await choose(page, "shoal", "The model's own voice");
    const sent = await body(page, kShort);
    assert.deepEqual([sent.model, sent.voice, sent.temperature, "speed" in sent], ["shoal", "default", 0.55, false]);
    assert.ok(await page.getByRole("button", { name: "Add a voice" }).isVisible());
    assertClean(page);
    await page.close();
  });

  test("a Kokoro model plays exactly the sound of the server", async () => {
    const page = await open();
    await choose(page, "kokoro", "af_one");
    await page.getByRole("radio", { name: "af_one" }).check();
    await page.getByLabel("random").uncheck();
    await page.getByLabel("Seed", { exact: true }).fill("7");
    await body(page, kWords);
    await played(page);
    const fields = { model: "kokoro", voice: "af_one", input: kWords, seed: 7, response_format: "wav", stream: false };
    const { rate, samples } = readWav((await server.http.post("/v1/audio/speech", fields)).body);
    const ear = await recorded(page);
    assert.equal(ear.rate, rate);
    assertHeard(ear.samples, samples);
    assertClean(page);
    await page.close();
  });

  for (const [colorScheme, width] of [["light", 1280], ["dark", 390]]) {
    test(`a model is chosen without a mouse, and looks right: ${colorScheme}, ${width} pixels wide`, async () => {
      const page = await open({ colorScheme, width, height: width > 600 ? 1000 : 844 });
      const focused = () => page.evaluate(() => document.activeElement.id);
      for (let i = 0; i < 60 && (await focused()) !== "model"; ++i) await page.keyboard.press("Tab");
      assert.equal(await focused(), "model");
      await page.keyboard.press("ArrowDown");
      await page.locator("#voice-select option", { hasText: "af_one" }).waitFor({ state: "attached" });
      assert.equal(await focused(), "model");
      for (let i = 0; i < 60 && (await focused()) !== "sampling-speed"; ++i) await page.keyboard.press("Tab");
      await page.keyboard.press("ArrowRight");
      assert.equal(await page.locator("#sampling-speed").inputValue(), "1.05");
      await screenshot(page, `kokoro_${colorScheme}_${width}`);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(overflow <= 0, `${overflow} pixels too wide`);
      assert.deepEqual(await page.evaluate(tooFaint), []);
      assertClean(page);
      await page.close();
    });
  }
});

describe("the page of a server with keys", { skip: browserMissing }, () => {
  test("asks for the key, uses it, and keeps it only in the tab", async () => {
    const server = await Server.start({ env: { SHOAL_API_KEY: "open-sesame" } });
    const browser = await Browser.start();
    try {
      const page = await browser.open(server.url);
      const key = page.getByLabel("API key", { exact: true });
      await key.waitFor();
      assert.match(await page.locator("#server-state").textContent(), /needs an API key/);
      assert.ok(await page.locator("#error").isHidden());
      await screenshot(page, "key");
      await key.fill("wrong");
      await key.press("Enter");
      await page.waitForFunction(() => /does not know this API key. Check that all of it was copied/.test(document.querySelector("#key-error").textContent));
      await key.waitFor();
      await key.fill("open-sesame");
      await key.press("Enter");
      await page.locator("#key-error").waitFor({ state: "hidden" });
      await page.waitForFunction(() => document.querySelector("#server-state").dataset.state === "ready");
      await page.getByLabel("Text", { exact: true }).fill(kShort);
      await page.getByRole("button", { name: "Speak" }).click();
      await until("sound", async () => (await analysed(page)).rms > 0.003, 60);
      const stored = await page.evaluate(() => ({ kept: Object.values({ ...localStorage }), cookie: document.cookie, url: location.href }));
      assert.deepEqual(stored, { kept: [], cookie: "", url: `${server.url}/` });
      assert.ok(!(await page.locator("#curl").textContent()).includes("sesame"));
      assert.deepEqual(page.strangers, []);
    } finally {
      await browser.stop();
      await server.stop();
    }
  });
});
