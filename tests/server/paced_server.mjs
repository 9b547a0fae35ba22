// A server of speech that costs next to nothing, to see what a load program itself takes: it answers each POST with WAV,
// the first 100 ms at once and 100 ms more every 100 ms.
//   node tests/server/paced_server.mjs [--port 8090] [--seconds 5]
import net from "node:net";
import { parseArgs } from "node:util";

const text = { type: "string" };
const { values } = parseArgs({ options: { port: text, seconds: text } });
const rate_hz = 24_000;
const piece_ms = 100;
const phases = 10;  // streams that begin within 10 ms of each other are written together
const pieces = Math.round((Number(values.seconds ?? 5) * 1000) / piece_ms);

const head = Buffer.from("524946460000ffff57415645666d74201000000001000100c05d000080bb0000020010006461746100ffffff", "hex");
const samples = Buffer.from(Int16Array.from({ length: (rate_hz * piece_ms) / 1000 }, (_, i) => 8000 * Math.sin(i / 10)).buffer);
const chunk = (bytes) => Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]);
const first = Buffer.concat([
  Buffer.from("HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n\r\n"), chunk(head), chunk(samples),
]);
const next = chunk(samples);
const last = Buffer.from("0\r\n\r\n");

const streams = Array.from({ length: phases }, () => new Set());
let phase = 0;
setInterval(() => {
  phase = (phase + 1) % phases;
  for (const stream of streams[phase]) {
    stream.socket.write(--stream.left > 0 ? next : last);
    if (stream.left <= 0) streams[phase].delete(stream);
  }
}, piece_ms / phases);

function answer(socket) {
  const stream = { socket, left: pieces };
  const mine = streams[phase];
  mine.add(stream);
  socket.once("close", () => mine.delete(stream));
  socket.write(first);
}

net.createServer({ noDelay: true }, (socket) => {
  let asked = "";
  socket.setMaxListeners(0).on("error", () => {}).on("data", (bytes) => {
    asked += bytes;
    const end = asked.indexOf("\r\n\r\n");
    const length = Number(/content-length: (\d+)/i.exec(asked)?.[1] ?? 0);
    if (end < 0 || asked.length < end + 4 + length) return;
    asked = "";
    answer(socket);
  });
}).listen(Number(values.port ?? 8090), "127.0.0.1", 4096, () => console.log("ready"));
