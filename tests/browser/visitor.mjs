// What a visitor of the page does and hears.
import assert from "node:assert/strict";
import { until } from "../server/harness.mjs";
import { analysed } from "./browser.mjs";

export const kShort = "The tide comes in, and the boats lift one by one.";
export const kLong = "Nobody hurries on the quay in the morning, and the gulls have all the time there is. ".repeat(12);

export const idle = (page) => page.waitForFunction(() => !document.body.classList.contains("busy"), null, { timeout: 120_000 });
export const played = (page, meanwhile = () => {}) =>
  until("the end of the playback", async () => {
    await meanwhile();
    const [play, time, length] = await Promise.all(["#play", "#time", "#length"].map((at) => page.locator(at).textContent()));
    return play === "Play" && time === length && parseFloat(length.split(":")[1]) > 0; // before it begins, too, it says "Play"
  }, 60);
// Longer than anybody pauses between two words: what was still to come would be heard.
export async function silent(page) {
  let since = Infinity;
  await until("silence", async () => {
    since = (await analysed(page)).rms < 0.003 ? Math.min(since, Date.now()) : Infinity;
    return Date.now() - since > 1500;
  });
}
export const status = (page) => page.locator("#status").textContent();
export async function speak(page, text) {
  await page.getByLabel("Text", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Speak" }).click();
}
export function assertClean(page) {
  assert.deepEqual(page.complaints, []);
  assert.deepEqual(page.strangers, [], "requests that left the server");
}

// Every sample, in order and exact, but for a few where the listener runs dry on a busy machine: that is heard as
// silence. Exact to a millionth of a step of 16 bits: Chromium interpolates a piece whose start in seconds, times the
// rate, is not a whole number in floating point, which moves samples by 5e-10 of a step.
export function assertHeard(recording, sent) {
  const ear = recording.map((sample) => Math.round(32768e6 * sample) / 1e6);
  const matches = (at, position, length) => {
    for (let i = 0; i < length; ++i) if (ear[at + i] !== sent[position + i]) return false;
    return true;
  };
  const places = new Map();  // of a sample: where it was sent
  sent.forEach((sample, i) => places.get(sample)?.push(i) ?? places.set(sample, [i]));
  let position = sent.findIndex((sample) => sample !== 0);
  let same = 0;
  for (let at = 0; at + 32 < ear.length && position + 32 < sent.length; ++at) {
    if (ear[at] === sent[position]) {
      ++same;
      ++position;
    } else if (ear[at] !== 0) {
      const found = places.get(ear[at])?.find((i) => i > position && matches(at, i, 32));
      if (found !== undefined) position = found + 1;
    }
  }
  assert.ok(same > 0.99 * sent.length, `${same} of ${sent.length} samples were heard as they were made`);
}
