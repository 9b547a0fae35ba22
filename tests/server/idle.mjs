// What connections cost that do nothing: opens many, asks /health once on each, and looks at the server's memory. (`shoal
// bench serve` has no users who say nothing, and sees no server's memory.)
//   node tests/server/idle.mjs [--connections 2000] [--limit-mb 100] [--check]      (variables as for load.mjs)
import net from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Server } from "./harness.mjs";

const text = { type: "string" };
const { values } = parseArgs({ options: { connections: text, "limit-mb": text, check: { type: "boolean" } } });
const connections = Number(values.connections ?? 2000);
const limit_mb = Number(values["limit-mb"] ?? 100);
const mb = (bytes) => Math.round((bytes / 2 ** 20) * 100) / 100;

function connect(port) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1", () => socket.write("GET /health HTTP/1.1\r\nHost: a\r\n\r\n"));
    socket.once("data", () => resolve(socket));
    socket.once("error", reject);
    socket.on("close", () => (socket.gone = true));
  });
}

const server = await Server.start();
const report = { connections };
try {
  await server.http.post("/v1/tts", { text: "Good morning.", seed: 1 });
  await sleep(2000);
  const before = server.residentBytes();
  const sockets = [];
  for (let i = 0; i < connections; i += 50) {
    sockets.push(...(await Promise.all(Array.from({ length: Math.min(50, connections - i) }, () => connect(server.port)))));
  }
  await sleep(2000);
  const after = server.residentBytes();
  report.resident_before_mb = mb(before);
  report.resident_after_mb = mb(after);
  report.growth_mb = mb(after - before);
  report.kb_each = Math.round((after - before) / connections / 102.4) / 10;
  report.still_open = sockets.filter((socket) => !socket.gone).length;
  report.speaks = (await server.http.post("/v1/tts", { text: "Good morning.", seed: 1 })).status === 200;
  sockets.forEach((socket) => socket.destroy());
} finally {
  await server.stop().then(() => (report.exit_code = 0), (error) => (report.exit_code = error.message));
}
report.ok = report.growth_mb < limit_mb && report.still_open === connections && report.speaks && report.exit_code === 0;
console.log(JSON.stringify(report, null, 2));
if (values.check && !report.ok) process.exitCode = 1;
