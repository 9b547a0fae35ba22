// A real browser with an empty profile, and an ear at what it plays. playwright-core comes from the folder that the
// build installed it into: nothing is installed beside the source.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const packages = process.env.SHOAL_BROWSER_PACKAGES;
assert.ok(packages, "SHOAL_BROWSER_PACKAGES must name the folder that tests/browser/package.json was installed into");
const { chromium } = createRequire(join(packages, "package.json"))("playwright-core");

export const executablePath = process.env.SHOAL_CHROMIUM ?? "/usr/bin/chromium";
export const browserMissing = existsSync(executablePath) ? false : `${executablePath} is not installed`;

// Whatever is connected to the loudspeaker is heard here too: by an analyser, and sample by sample by the recorder that
// the page has for microphones. It hears everything later, since it has to be loaded first. (A ScriptProcessorNode is
// there at once, but loses what the page's main thread does not take in time.)
function listen() {
  window.heard = { analyser: null };
  const kDelay_s = 3;
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode) {
      const { context } = this;
      const analyser = new AnalyserNode(context, { fftSize: 8192 });
      const delay = new DelayNode(context, { delayTime: kDelay_s, maxDelayTime: kDelay_s });
      const nobody = new GainNode(context, { gain: 0 }); // a delay that leads nowhere does not run
      const heard = { pieces: [], analyser, rate: context.sampleRate, delay_s: kDelay_s, error: null };
      window.heard = heard;
      const begin_s = context.currentTime;
      connect.call(this, analyser);
      connect.call(connect.call(connect.call(this, delay), nobody), context.destination);
      const attend = async () => {
        await context.audioWorklet.addModule(document.getElementById("recorder").dataset.src);
        if (context.currentTime > begin_s + kDelay_s - 0.5) throw new Error("the recorder came too late to hear all");
        const recorder = new AudioWorkletNode(context, "shoal-recorder", { channelCount: 1, channelCountMode: "explicit" });
        recorder.port.onmessage = ({ data }) => heard.pieces.push(data);
        connect.call(connect.call(delay, recorder), nobody);
      };
      attend().catch((error) => (heard.error = String(error)));
    }
    return connect.call(this, target, ...rest);
  };
}

// How long the page's main thread was kept from its work, by the machine or by itself.
function watchStalls() {
  const kTick_ms = 20;
  let last_ms = performance.now();
  window.stalled_ms = 0;
  setInterval(() => {
    const now_ms = performance.now();
    window.stalled_ms = Math.max(window.stalled_ms, now_ms - last_ms - kTick_ms);
    last_ms = now_ms;
  }, kTick_ms);
}

export class Browser {
  static async start() {
    const profile = mkdtempSync(join(tmpdir(), "shoal_browser_"));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath,
      headless: true,
      acceptDownloads: true,
      viewport: { width: 1280, height: 1000 },
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required",
        // A microphone that beeps, and a person who allows it.
        "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
    });
    await context.addInitScript(listen);
    await context.addInitScript(watchStalls);
    return new Browser(context, profile);
  }

  constructor(context, profile) {
    this.context = context;
    this.profile = profile;
  }

  async stop() {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true });
  }

  // An empty page; it says what the console complained about and which requests went elsewhere than to `home`.
  async page(home, { colorScheme = "light", width = 1280, height = 1000 } = {}) {
    const page = await this.context.newPage();
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    page.complaints = [];
    page.strangers = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) page.complaints.push(message.text());
    });
    page.on("pageerror", (error) => page.complaints.push(String(error)));
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(home) && !url.startsWith("blob:" + home) && !url.startsWith("data:")) page.strangers.push(url);
    });
    return page;
  }

  // The page of a server.
  async open(origin, options) {
    const page = await this.page(origin + "/", options);
    await page.goto(origin + "/");
    await page.waitForFunction(() => document.querySelector("#server-state").dataset.state !== "unknown").catch(() => {
      assert.fail(`the page does not come to life: ${page.complaints.join("; ")}`);
    });
    return page;
  }
}

// What the loudspeaker got so far, without the silence before it.
export async function recorded(page) {
  await page.evaluate(() => (window.heard.until_s = window.heard.analyser.context.currentTime + window.heard.delay_s + 0.5));
  await page.waitForFunction(() => window.heard.error || window.heard.analyser.context.currentTime > window.heard.until_s);
  const { error, rate, samples } = await page.evaluate(() => ({
    error: window.heard.error,
    rate: window.heard.rate,
    samples: window.heard.pieces.flatMap((piece) => [...piece]),
  }));
  assert.equal(error, null);
  const begin = samples.findIndex((sample) => sample !== 0);
  return { rate, samples: begin < 0 ? [] : samples.slice(begin) };
}

// The loudness, and the share of it in the band of speech, as the analyser sees the last moment.
export function analysed(page) {
  return page.evaluate(() => {
    const { analyser, rate } = window.heard;
    // An analyser whose clock stands keeps the last that it saw, though nobody hears it.
    if (analyser?.context.state !== "running") return { rms: 0, speech: 0 };
    const wave = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(wave);
    const levels = new Float32Array(analyser.frequencyBinCount);
    analyser.getFloatFrequencyData(levels);
    let all = 0;
    let speech = 0;
    levels.forEach((level, bin) => {
      const power = 10 ** (level / 10);
      const frequency = (bin * rate) / analyser.fftSize;
      all += power;
      if (frequency > 70 && frequency < 5000) speech += power;
    });
    return { rms: Math.sqrt(wave.reduce((sum, x) => sum + x * x, 0) / wave.length), speech: all > 0 ? speech / all : 0 };
  });
}

// Saved for people to look at, where SHOAL_SCREENSHOTS names a folder.
export async function screenshot(page, name) {
  const folder = process.env.SHOAL_SCREENSHOTS;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

// In the page: texts with less contrast than WCAG AA asks for (4.5, or 3 when large).
export function tooFaint() {
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const groundOf = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(e).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.disabled || !element.checkVisibility({ opacityProperty: true }) || element.closest("pre, noscript")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(channels(style.color)), luminance(groundOf(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (contrast < (large ? 3 : 4.5)) faint.push(`${contrast.toFixed(2)}: ${element.textContent.trim().slice(0, 40)}`);
  }
  return faint;
}
