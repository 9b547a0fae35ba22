// POST /v1/tts/batch: order kept, items apart from each other, and answers as they come.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sharedServer } from "./harness.mjs";
import { assertSpeech, clip, readWav } from "./sound.mjs";

const server = sharedServer({ before, after });
const post = (body, headers = {}) => server().http.post("/v1/tts/batch", body, { headers });
const texts = ["Good morning.", "The train leaves at noon.", "Two and two make four.", "She sells sea shells."];
const sound = (result) => Buffer.from(result.audio_base64, "base64");

async function batch(body) {
  const answer = await post(body);
  assert.equal(answer.status, 200, answer.text().slice(0, 500));
  return answer.json();
}

test("results keep the order of the items and carry sound and times", async () => {
  const { success, results, total_time } = await batch({ items: texts.map((text, i) => ({ text, seed: i })) });
  assert.equal(success, true);
  assert.equal(results.length, texts.length);
  assert.ok(total_time > 0);
  for (const [i, result] of results.entries()) {
    assert.equal(result.success, true);
    assert.ok(result.generation_time >= 0 && !result.error);
    const { samples, rate } = readWav(sound(result));
    assertSpeech(samples, rate);
    const alone = await batch({ items: [{ text: texts[i], seed: i }] });
    assert.deepEqual(sound(alone.results[0]), sound(result), "company changes nothing");
  }
});

test("one bad item never fails the others", async () => {
  const { results } = await batch({
    items: [{ text: texts[0], seed: 1 }, { text: texts[1], voice: "nobody here" }, { text: "" },
      { text: texts[2], reference_audio: Buffer.alloc(4000, 5).toString("base64"), reference_text: "x" },
      1, { text: texts[0], size: 3 }, { text: texts[0], seed: 1 }],
  });
  assert.deepEqual(results.map((result) => result.success), [true, false, false, false, false, false, true]);
  for (const bad of results.slice(1, 6)) {
    assert.ok(bad.error.length > 5 && !bad.audio_base64, JSON.stringify(bad).slice(0, 200));
  }
  assert.deepEqual(sound(results[0]), sound(results[6]));
});

test("an item follows its reference", async () => {
  const audio = clip(2).toString("base64");
  const { results } = await batch({
    items: [{ text: texts[0], seed: 1, reference_audio: audio, reference_text: "Hm, hm." }, { text: texts[0], seed: 1 }],
  });
  assert.deepEqual(results.map((result) => result.success), [true, true], JSON.stringify(results).slice(0, 300));
  assert.notDeepEqual(sound(results[0]), sound(results[1]));
});

test("the batch's seed gives each item its own, the same each time; an item's own wins", async () => {
  const ask = (items) => batch({ seed: 42, items });
  const [a, b] = await Promise.all([ask([{ text: texts[0] }, { text: texts[0] }]), ask([{ text: texts[0] }, { text: texts[0], seed: 3 }])]);
  assert.deepEqual(sound(a.results[0]), sound(b.results[0]));
  assert.notDeepEqual(sound(a.results[0]), sound(a.results[1]));
  assert.notDeepEqual(sound(a.results[1]), sound(b.results[1]));
  const own = await batch({ items: [{ text: texts[0], seed: 3 }] });
  assert.deepEqual(sound(own.results[0]), sound(b.results[1]));
});

test("NDJSON streams items as they end", async () => {
  const long = texts.join(" ").repeat(6);
  const message = await server().http.open("POST", "/v1/tts/batch", {
    headers: { accept: "application/x-ndjson" },
    body: { items: [{ text: long, seed: 1 }, { text: texts[0], seed: 2 }, { text: "", seed: 3 }] },
  });
  assert.equal(message.statusCode, 200);
  assert.match(message.headers["content-type"], /application\/x-ndjson/);
  const lines = [];
  let rest = "";
  for await (const piece of message) {
    rest += piece.toString("utf8");
    const whole = rest.split("\n");
    rest = whole.pop();
    lines.push(...whole.map((line) => JSON.parse(line)));
  }
  assert.equal(rest, "");
  const items = lines.filter((line) => line.index !== undefined);
  assert.deepEqual(items.map((item) => item.index).sort(), [0, 1, 2]);
  assert.equal(items.at(-1).index, 0, "the long item ends last");
  assert.deepEqual([0, 1, 2].map((i) => items.find((item) => item.index === i).success), [true, true, false]);
  const plain = await batch({ items: [{ text: texts[0], seed: 2 }] });
  assert.equal(items.find((item) => item.index === 1).audio_base64, plain.results[0].audio_base64);
});

test("an invalid batch is refused", async () => {
  for (const [body, status] of [
    [{}, [400, 422]], [{ items: [] }, [400, 422]], [{ items: "x" }, [400, 422]],
    [{ items: Array(65).fill({ text: "Hello." }) }, [400, 413, 422]],
    [{ items: [{ text: "Hello." }], temperature: 40 }, [400, 422]],
  ]) {
    const answer = await post(body);
    assert.ok(status.includes(answer.status), `${JSON.stringify(body).slice(0, 80)}: ${answer.status} ${answer.text()}`);
  }
});

test("a client that leaves takes its whole batch with it", async () => {
  const message = await server().http.open("POST", "/v1/tts/batch", {
    headers: { accept: "application/x-ndjson" },
    body: { items: [{ text: texts[0] }, ...Array(20).fill({ text: texts.join(" ").repeat(8) })] },
  });
  await new Promise((resolve) => message.once("data", resolve));
  message.destroy();
  await server().assertSpeaks();
});
