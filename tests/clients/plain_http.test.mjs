// Programs and libraries that speak HTTP and know no speech API: curl, Python's httpx, aiohttp and requests, and xsai.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sharedServer } from "../server/harness.mjs";
import { magic } from "../server/sound.mjs";
import { guardedBy, load } from "./clients.mjs";
import { aacSeconds, heard, seconds } from "./heard.mjs";

const { generateSpeech } = await load("@xsai/generate-speech");
const python = "/usr/bin/python3";  // Debian's, which has Debian's packages
const run = promisify(execFile);  // the server's output must be read meanwhile
const server = sharedServer({ before, after }, guardedBy("sesame"));
const folder = mkdtempSync(join(tmpdir(), "shoal_plain_"));
after(() => rmSync(folder, { recursive: true }));

const formats = ["mp3", "opus", "aac", "flac", "wav", "pcm"];
const text = "The train leaves at noon. ".repeat(4);
const body = (response_format) => ({ model: "tts-1", voice: "nora", input: text, response_format, seed: 3 });
const authorization = "Bearer sesame";
async function spoken(format) {
  const answer = await server().http.ask("POST", "/v1/audio/speech", { body: body(format), headers: { authorization } });
  assert.equal(answer.status, 200, answer.text());
  return answer.body;
}

async function assertSpoken(bytes, format, who) {
  assert.ok(magic[format](bytes), `${who}: no ${format}`);
  assert.ok((format === "aac" ? aacSeconds(bytes) : seconds(heard(bytes, format))) > 3, `${who}: too short a ${format}`);
  if (format === "pcm" || format === "wav") assert.deepEqual(bytes, await spoken(format));
}

for (const library of ["httpx", "aiohttp", "requests"]) {
  const missing = spawnSync(python, ["-c", `import ${library}`]).status !== 0;
  const skip = missing && `python3-${library} is not installed: tools/install_deps.sh --test`;
  test(`Python's ${library} speaks six formats as they are made, and reads an error`, { skip }, async () => {
    const script = join(dirname(fileURLToPath(import.meta.url)), "speak.py");
    const { stdout } = await run(python, [script, library, `${server().url}/v1/audio/speech`, "sesame", folder]);
    const answers = JSON.parse(stdout);
    for (const format of formats) {
      const [status, type, pieces] = answers[format];
      assert.equal(status, 200, `${format}: ${stdout}`);
      assert.match(type, /^audio\//);
      if (format === "pcm") assert.ok(pieces > 1, "one piece: not as it is made");
      await assertSpoken(readFileSync(join(folder, `${library}.${format}`)), format, library);
    }
    const [status, answer] = answers.mp4;
    assert.deepEqual([status, answer.error.param], [400, "response_format"]);
  });
}

test("curl speaks six formats, and fails with the server's words", async () => {
  const curl = async (format, ...more) => {
    const { stdout } = await run("curl", ["-sS", "--fail-with-body", `${server().url}/v1/audio/speech`, "-H", "content-type: application/json",
      "-H", `authorization: ${authorization}`, "-d", JSON.stringify(body(format)), ...more], { encoding: "buffer", maxBuffer: 1 << 28 });
    return stdout;
  };
  for (const format of formats) await assertSpoken(await curl(format), format, "curl");
  const error = await curl("mp4").then(() => null, (thrown) => thrown);
  assert.equal(error.code, 22);
  assert.match(String(error.stdout), /response_format/);
});

test("xsai speaks six formats, and reports an error", async () => {
  const speak = (format, apiKey = "sesame") =>
    generateSpeech({ baseURL: `${server().url}/v1/`, apiKey, model: "tts-1", voice: "nora", input: text, responseFormat: format, seed: 3 });
  for (const format of formats) await assertSpoken(Buffer.from(await speak(format)), format, "xsai");
  await assert.rejects(speak("mp4"), /response_format/);
  await assert.rejects(speak("mp3", "wrong"), /API key/);
});
