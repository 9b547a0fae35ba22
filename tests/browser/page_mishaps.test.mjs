// The page when things go as they usually do: phones, reloads, slow servers, broken connections, the microphone.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Server, until } from "../server/harness.mjs";
import { readWav } from "../server/sound.mjs";
import { Browser, browserMissing, recorded, screenshot, tooFaint } from "./browser.mjs";
import { Door } from "./door.mjs";
import { assertClean, assertHeard, idle, kLong, kShort, played, speak, status } from "./visitor.mjs";

const kPhones = [["light", 390], ["dark", 320]];
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

describe("the page on an ordinary day", { skip: browserMissing }, () => {
  let server;
  let browser;
  let door;
  before(async () => {
    server = await Server.start({ flags: ["--threads", "1"] });
    browser = await Browser.start();
    door = await Door.open(server);
  }, { timeout: 240_000 });
  after(async () => {
    await door?.close();
    await browser?.stop();
    await server?.stop();
  }, { timeout: 120_000 });

  const speakButton = (page) => page.getByRole("button", { name: "Speak", exact: true });
  const whole = async (input, seed) => {
    const fields = { model: "shoal", voice: "default", input, seed, response_format: "wav", stream: false };
    return readWav((await server.http.post("/v1/audio/speech", fields)).body);
  };
  const seeded = async (page, seed) => {
    await page.getByLabel("random").uncheck();
    await page.getByLabel("Seed", { exact: true }).fill(String(seed));
  };
  const saved = async (page) => {
    const waiting = page.waitForEvent("download");
    await page.locator("#download").click();
    return readWav(readFileSync(await (await waiting).path()));
  };
  const ready = (page) => page.waitForFunction(() => document.querySelector("#server-state").dataset.state === "ready");

  test("an empty box speaks nothing, and says so", async () => {
    const page = await browser.open(server.url);
    for (const blank of ["", " \n "]) {
      await page.getByLabel("Text", { exact: true }).fill(blank);
      assert.ok(await speakButton(page).isDisabled());
      assert.equal(await speakButton(page).getAttribute("title"), "Write something first");
      await page.getByLabel("Text", { exact: true }).press("Control+Enter");
      assert.equal(await status(page), "");
    }
    await page.getByLabel("Text", { exact: true }).fill("a");
    assert.ok(await speakButton(page).isEnabled());
    assertClean(page);
    await page.close();
  });

  test("text, voice and settings survive a reload, and end with the tab", async () => {
    const page = await browser.open(server.url);
    await page.getByLabel("Text", { exact: true }).fill(kShort);
    await page.getByRole("radio", { name: "hugo" }).check();
    await page.getByLabel("Temperature", { exact: true }).fill("0.55");
    await page.getByText("OPUS", { exact: true }).click();
    await seeded(page, 11);
    const request = () => page.locator("#curl").textContent();
    const before = await request();
    await page.reload();
    assert.equal(await request(), before, "before the server has answered");
    await ready(page);
    await page.getByRole("radio", { name: "iris" }).waitFor();
    assert.equal(await request(), before);
    assert.ok(await page.getByRole("radio", { name: "hugo" }).isChecked());
    assert.equal(await page.getByLabel("Text", { exact: true }).inputValue(), kShort);
    assert.equal(await page.getByLabel("Temperature", { exact: true }).inputValue(), "0.55");
    await page.getByRole("button", { name: "Download OPUS" }).waitFor();
    assertClean(page);
    await page.close();

    const other = await browser.open(server.url);
    assert.notEqual(await other.getByLabel("Text", { exact: true }).inputValue(), kShort);
    await other.close();
  });

  test("the page works in a browser that stores nothing", async () => {
    const page = await browser.page(server.url + "/");
    await page.addInitScript(() => Object.defineProperty(window, "sessionStorage", { get() { throw new Error("forbidden"); } }));
    await page.goto(server.url + "/");
    await ready(page);
    await speak(page, kShort);
    await idle(page);
    assert.match(await status(page), /seconds of sound/);
    assertClean(page);
    await page.close();
  });

  for (const [colorScheme, width] of kPhones) {
    test(`a phone chooses, adds and deletes voices above the button: ${colorScheme}, ${width} pixels`, async () => {
      const page = await browser.open(server.url, { colorScheme, width, height: 800 });
      const select = page.getByRole("combobox", { name: "Voice" });
      const [choice, button] = [await select.boundingBox(), await speakButton(page).boundingBox()];
      assert.ok(button.y > choice.y && button.y + button.height < choice.y + 160, "select and button are far apart");
      assert.ok(button.y < 800, "the button is below the first screen");
      assert.ok(await page.getByRole("radio", { name: "hugo" }).isHidden());
      await select.selectOption("hugo");
      assert.match(await page.locator("#curl").textContent(), /"voice": "hugo"/);
      assert.ok(await page.getByRole("button", { name: "Delete this voice" }).isHidden(), "hugo comes with the model");

      const name = "A".repeat(120) + " long";
      const clip = await server.http.post("/v1/audio/speech", { model: "shoal", voice: "default", input: kShort, seed: 3, response_format: "wav" });
      await page.getByRole("button", { name: "Add a voice" }).click();
      const dialog = page.locator("#voice-dialog");
      await dialog.getByLabel("Recording").setInputFiles({ name: "x.wav", mimeType: "audio/wav", buffer: clip.body });
      await dialog.getByLabel("Name").fill(name);
      await dialog.getByLabel("Transcript").fill(kShort);
      assert.ok((await overflow(page)) <= 0);
      await dialog.getByRole("button", { name: "Add voice" }).click();
      await dialog.waitFor({ state: "hidden" });
      assert.equal(await select.inputValue(), name);
      await page.getByText("The same request with curl").click();
      await page.getByRole("button", { name: "API key" }).click();
      assert.ok((await overflow(page)) <= 0);
      assert.deepEqual(await page.evaluate(tooFaint), []);
      await screenshot(page, `phone_${colorScheme}_${width}`);
      await page.getByRole("button", { name: "Delete this voice" }).click();
      await page.locator("#delete-dialog").getByRole("button", { name: "Delete" }).click();
      await page.waitForFunction(() => document.querySelector("#voice-select").value === "default");
      assertClean(page);
      await page.close();
    });

    test(`the documentation reads well on a phone: ${colorScheme}, ${width} pixels`, async () => {
      const page = await browser.page(server.url, { colorScheme, width, height: 800 });
      await page.goto(server.url + "/docs");
      assert.ok((await overflow(page)) <= 0, "it must be moved sideways");
      const narrowest = await page.evaluate(() => Math.min(...[...document.querySelectorAll("td")].filter((e) => e.textContent).map((e) => e.clientWidth)));
      assert.ok(narrowest > width - 60, `a column of ${narrowest} pixels`);
      assert.deepEqual(await page.evaluate(tooFaint), []);
      await page.locator("section").first().scrollIntoViewIfNeeded();
      await screenshot(page, `docs_${colorScheme}_${width}`);
      await page.close();
    });
  }

  // It says so for a moment only.
  const copy = (page) =>
    Promise.all([page.getByText("Copied", { exact: true }).waitFor(), page.getByRole("button", { name: "Copy" }).click()]);

  test("a list of voices that comes late does not take back a voice that was added meanwhile", async () => {
    const page = await browser.page(server.url);
    let late;
    await page.route("**/v1/audio/voices", async (route) => {
      const response = await route.fetch();
      if (late) return route.fulfill({ response });
      late = () => route.fulfill({ response });
    });
    await page.goto(server.url);
    await until("the first list", () => late);
    const clip = await server.http.post("/v1/audio/speech", { model: "shoal", voice: "default", input: kShort, seed: 3, response_format: "wav" });
    await page.getByRole("button", { name: "Add a voice" }).click();
    const dialog = page.locator("#voice-dialog");
    await dialog.getByLabel("Recording").setInputFiles({ name: "Late.wav", mimeType: "audio/wav", buffer: clip.body });
    await dialog.getByLabel("Transcript").fill(kShort);
    await dialog.getByRole("button", { name: "Add voice" }).click();
    await dialog.waitFor({ state: "hidden" });
    const radio = page.getByRole("radio", { name: "Late" });
    await radio.waitFor();
    const arrived = page.waitForResponse("**/v1/audio/voices");
    await late();
    await (await arrived).finished();
    await page.evaluate(() => new Promise((done) => setTimeout(done, 100))); // the page has read it
    assert.ok(await radio.isChecked());
    assertClean(page);
    await page.close();
    await server.http.ask("DELETE", "/v1/references/delete", { body: { reference_id: "Late" } });
  });

  test("Copy copies, and answers", async () => {
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.url });
    const page = await browser.open(server.url);
    await page.getByText("The same request with curl").click();
    await copy(page);
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await page.locator("#curl").textContent());
    // Over plain HTTP from another machine there is no clipboard object.
    await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined }));
    await page.getByText("Copied", { exact: true }).waitFor({ state: "hidden" });
    await copy(page);
    assertClean(page);
    await page.close();
  });

  test("what was made before Cancel is saved, sample by sample", async () => {
    const page = await browser.open(server.url);
    await seeded(page, 5);
    await page.getByText("MP3", { exact: true }).click();
    await speak(page, kLong);
    await until("two seconds of sound", async () => Number((await page.locator("#length").textContent()).split(":")[1]) > 2, 60);
    await page.keyboard.press("Escape");
    await idle(page);
    await page.getByRole("button", { name: "Download WAV" }).waitFor(); // a part is never spoken anew
    const { samples } = await saved(page);
    const { samples: all } = await whole(kLong, 5);
    assert.ok(samples.length < all.length);
    assert.deepEqual(samples, all.slice(0, samples.length));
    await page.getByRole("button", { name: "Play", exact: true }).click();
    await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
    assertClean(page);
    await page.close();
  });

  test("no gap is heard at a real-time factor of 0.7", async () => {
    Object.assign(door, { pace: 0.7, broken_s: Infinity });
    const page = await browser.open(door.url);
    await seeded(page, 9);
    const gaps = () => page.locator("#gaps").textContent();
    // Sound that the door itself sends late, or a page that gets no time, may leave a gap.
    const disturbed = async () => door.late_s > 0.1 || (await page.evaluate(() => window.stalled_ms > 100));
    for (let attempt = 1; attempt <= 4; ++attempt) {
      await page.evaluate(() => (window.stalled_ms = 0));
      await speak(page, kShort + " " + kShort);
      await idle(page);
      await played(page);
      if ((await gaps()) === "0" || !(await disturbed())) break;
    }
    assert.equal(await gaps(), "0");
    assert.ok(Number(await page.locator("#rtf").textContent()) > 0.65);
    assertHeard((await recorded(page)).samples, (await whole(kShort + " " + kShort, 9)).samples);
    assertClean(page);
    await page.close();
  });

  test("a connection that breaks says what to do, keeps what was made, and comes back", async () => {
    Object.assign(door, { pace: 0.5, broken_s: 1.5 });
    const page = await browser.open(door.url);
    const error = page.locator("#error");
    await seeded(page, 9);
    await speak(page, kShort);
    await error.waitFor();
    assert.match(await error.textContent(), /broke off this speech; its log says why\. What was made, 1\.\d seconds, can be played and saved\./);
    const { samples } = await saved(page);
    assert.deepEqual(samples, (await whole(kShort, 9)).samples.slice(0, samples.length));

    door.broken_s = Infinity;
    await speak(page, kShort);
    await until("sound", async () => (await status(page)) === "Speaking", 30);
    door.cut();
    await error.waitFor();
    assert.match(await error.textContent(), /connection to the server broke\. Check that “shoal serve” is still running/);
    assert.doesNotMatch(await error.textContent(), /network error/i);
    await screenshot(page, "away");
    door.away = false;
    await error.waitFor({ state: "hidden" });
    assert.match(await status(page), /answers again/);
    await page.close();
  });

  test("a voice is recorded with the microphone", async () => {
    const page = await browser.open(server.url);
    await page.getByRole("button", { name: "Add a voice" }).click();
    const dialog = page.locator("#voice-dialog");
    await dialog.getByRole("button", { name: "Record", exact: true }).click();
    const meter = dialog.getByRole("meter");
    await until("the meter to move", async () => Number(await meter.getAttribute("aria-valuenow")) > 30);
    assert.ok(await dialog.getByRole("button", { name: "Add voice" }).isDisabled());
    await until("five seconds", async () => parseFloat((await page.locator("#record-time").textContent()).slice(2)) > 5.1, 30);
    await screenshot(page, "recording");
    await dialog.getByRole("button", { name: "Stop", exact: true }).click();
    const note = await page.locator("#record-note").textContent();
    assert.match(note, /^\d+\.\d seconds/);
    assert.ok(parseFloat(note) >= 5, note);
    assert.match(await dialog.getByLabel("Transcript").inputValue(), /ferry/);
    await dialog.getByRole("button", { name: "Listen" }).click();
    await dialog.getByRole("button", { name: "Stop listening" }).click();
    await dialog.getByLabel("Name").fill("Mine");
    await dialog.getByRole("button", { name: "Add voice" }).click();
    await dialog.waitFor({ state: "hidden" });
    const folder = join(server.references, "Mine");
    const clip = readdirSync(folder).find((name) => name.endsWith(".wav"));
    const { rate, samples } = readWav(readFileSync(join(folder, clip)));
    assert.ok(samples.length / rate > 5 && samples.some((sample) => Math.abs(sample) > 3000));
    assert.ok(await page.getByRole("radio", { name: "Mine" }).isChecked());
    await speak(page, "Hello.");
    await idle(page);
    assert.match(await status(page), /seconds of sound/);
    assertClean(page);
    await page.close();
  });

  test("a microphone that is refused or missing is told in words", async () => {
    const page = await browser.page(server.url + "/");
    await page.addInitScript(() => {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("Permission denied", window.refusal));
    });
    await page.goto(server.url + "/");
    await page.getByRole("button", { name: "Add a voice" }).click();
    for (const [refusal, words] of [["NotAllowedError", /Allow it for this page/], ["NotFoundError", /No microphone/], ["NotReadableError", /Another program/]]) {
      await page.evaluate((name) => (window.refusal = name), refusal);
      await page.getByRole("button", { name: "Record", exact: true }).click();
      await page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#record-note").textContent), words.source);
    }
    await page.close();

    const plain = await browser.page(server.url + "/"); // as over HTTP from another machine
    await plain.addInitScript(() => Object.defineProperty(navigator, "mediaDevices", { value: undefined }));
    await plain.goto(server.url + "/");
    await plain.getByRole("button", { name: "Add a voice" }).click();
    assert.ok(await plain.getByRole("button", { name: "Record", exact: true }).isDisabled());
    assert.match(await plain.locator("#record-note").textContent(), /only over HTTPS/);
    await plain.close();
  });
});
