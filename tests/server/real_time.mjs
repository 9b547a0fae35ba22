// Players in real time against the program, for as long as the sound lasts: not part of the suite.
//
//   node tests/server/real_time.mjs [--seconds 200] [--formats pcm,wav,mp3,opus] [--write-timeout-s 60]
//
// For each format at once `curl | ffmpeg -re` plays that much sound; each must come whole, under the default deadline of
// 60 s. The machine must make sound as quickly as all of them listen.
// Beside them one reader takes the first bytes and then nothing: write_timeout_s ends it, and the log says so. Wants
// curl and ffmpeg, and what tests/server/harness.mjs wants.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import net from "node:net";
import { parseArgs } from "node:util";
import { Server, until } from "./harness.mjs";

const { values } = parseArgs({ options: {
  seconds: { type: "string", default: "200" },
  formats: { type: "string", default: "pcm,wav,mp3,opus" },
  "write-timeout-s": { type: "string", default: "60" },
} });
const seconds = Number(values.seconds);
const sentence = "Every morning the fishermen went out before the sun was up, and came back at noon. ";
const secondsOfSentence = 4.4;
const input = sentence.repeat(Math.ceil(seconds / secondsOfSentence));

function play(url, format) {
  const body = JSON.stringify({ model: "tts-1", voice: "default", input, response_format: format, seed: 4 });
  const bare = format === "pcm" ? "-f s16le -ar 24000 -ac 1" : "";
  const script = `set -o pipefail; curl -sS --fail-with-body "$0/v1/audio/speech" -H 'content-type: application/json' -d "$1" | ` +
    `ffmpeg -hide_banner -nostdin -re ${bare} -i - -f null -`;
  const start = Date.now();
  const child = spawn("bash", ["-c", script, url, body], { stdio: ["ignore", "ignore", "pipe"] });
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (told += text));
  return new Promise((resolve) => child.on("close", (code) => {
    const heard = [...told.matchAll(/time=(\d+):(\d+):([\d.]+)/g)].at(-1) ?? ["", 0, 0, 0];
    resolve({ format, code, told, heard_s: heard[1] * 3600 + heard[2] * 60 + Number(heard[3]), took_s: (Date.now() - start) / 1000 });
  }));
}

function stall(port) {
  const body = JSON.stringify({ text: input, streaming: true, sample_rate: 48000 });
  const socket = net.connect(port, "127.0.0.1", () => socket.write(
    `POST /v1/tts HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`));
  socket.on("error", () => {}).once("data", () => socket.pause());
  return socket;
}

const server = await Server.start({ flags: ["--threads", "1", "--request-timeout-s", "60", "--write-timeout-s", values["write-timeout-s"]] });
const stalled = stall(server.port);
const played = await Promise.all(values.formats.split(",").map((format) => play(server.url, format)));
for (const { format, code, heard_s, took_s, told } of played) {
  console.log(`${format}: exit code ${code}, ${heard_s.toFixed(1)} s of sound played in ${took_s.toFixed(1)} s`);
  assert.equal(code, 0, `${server.log.slice(-2000)}\n${told.slice(-300)}`);
  assert.ok(heard_s >= 0.9 * seconds, `${format}: only ${heard_s} s were heard`);
}
const reason = await until("the stalled reader's end in the log", () =>
  server.log.match(/.*answer cut off: the client took nothing for write_timeout_s.*/), 90);
console.log(reason[0]);
assert.equal(server.log.match(/answer cut off/g).length, 1, server.log);
stalled.destroy();
await server.stop();
