// A door in front of a server, for what does not happen on a good day: sound that comes slowly, connections that break,
// a server that is away.
import { createServer, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { readWav } from "../server/sound.mjs";

const kFrame = 2048; // samples
const kPieces = [1, 1, 2, 2, 4, 4, 8, 8]; // frames, then 16 (src/runtime/schedule/codec_schedule.h)

export class Door {
  pace = 0; // seconds of work for each second of sound of a speech; 0: as it comes
  broken_s = Infinity; // after as much sound a speech is cut off
  away = false; // every connection is
  late_s = 0; // at most, when sound of the latest speech was sent

  static async open(server) {
    const door = new Door(server);
    await new Promise((done) => door.listener.listen(0, "127.0.0.1", done));
    door.url = `http://127.0.0.1:${door.listener.address().port}`;
    return door;
  }

  constructor(server) {
    this.server = new URL(server.url);
    this.listener = createServer((asked, answer) => void this.pass(asked, answer));
  }

  async close() {
    this.listener.closeAllConnections();
    await new Promise((done) => this.listener.close(done));
  }

  // Breaks the speech that is on its way, and is away from here on.
  cut() {
    this.away = true;
    this.speaking?.destroy();
  }

  async pass(asked, answer) {
    if (this.away) return asked.socket.destroy();
    const headers = { ...asked.headers, host: this.server.host };
    if (headers.origin) headers.origin = this.server.origin;
    const { hostname, port } = this.server;
    const onward = request({ hostname, port, path: asked.url, method: asked.method, headers }, (inner) => {
      if (this.pace > 0 && asked.url === "/v1/audio/speech") return void this.slowly(inner, answer);
      answer.writeHead(inner.statusCode, inner.headers);
      inner.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    asked.pipe(onward);
  }

  // All of it is made first: nothing else disturbs the pace.
  async slowly(inner, answer) {
    const parts = [];
    for await (const part of inner) parts.push(part);
    const whole = Buffer.concat(parts);
    const { rate, pcm } = readWav(whole, { streamed: true });
    answer.writeHead(200, { "content-type": "audio/wav" });
    answer.write(whole.subarray(0, whole.length - pcm.length));
    this.speaking = answer;
    this.late_s = 0;
    const begun = Date.now();
    let due_s = 0;
    for (let at = 0, piece = 0; at < pcm.length && !answer.destroyed; ++piece) {
      const bytes = pcm.subarray(at, at + 2 * kFrame * (kPieces[piece] ?? 16));
      due_s += (this.pace * bytes.length) / 2 / rate;
      await sleep(Math.max(0, begun + 1000 * due_s - Date.now()));
      this.late_s = Math.max(this.late_s, (Date.now() - begun) / 1000 - due_s);
      at += bytes.length;
      answer.write(bytes);
      if (at / 2 / rate >= this.broken_s) return answer.destroy();
    }
    answer.end();
  }
}
