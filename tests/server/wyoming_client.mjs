// A client of the Wyoming protocol, written after the protocol's description.
import assert from "node:assert/strict";
import net from "node:net";
import { slowness } from "./harness.mjs";

// An event as bytes; as Home Assistant's package writes it, or (inline) with its data in the line.
export function event(type, data, { payload = Buffer.alloc(0), inline = false } = {}) {
  const json = data && !inline ? Buffer.from(JSON.stringify(data)) : Buffer.alloc(0);
  const line = { type, ...(inline && data ? { data } : { version: "1.8.0" }) };
  if (json.length) line.data_length = json.length;
  if (payload.length) line.payload_length = payload.length;
  return Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), json, payload]);
}

export class Wyoming {
  // where: a port of this machine, or the path of a UNIX socket.
  static async connect(where) {
    const client = new Wyoming();
    client.socket = net.connect(typeof where === "number" ? { host: "127.0.0.1", port: where } : { path: where });
    client.socket.on("data", (bytes) => client.take(bytes));
    client.socket.on("error", () => {});
    client.socket.on("close", () => client.end());
    await new Promise((done, failed) => client.socket.on("connect", done).on("error", failed));
    return client;
  }

  bytes = Buffer.alloc(0);
  events = [];
  waiting = [];
  closed = false;

  take(bytes) {
    this.bytes = Buffer.concat([this.bytes, bytes]);
    for (;;) {
      const end = this.bytes.indexOf("\n");
      if (end < 0) return;
      const line = JSON.parse(this.bytes.toString("utf8", 0, end));
      const data_end = end + 1 + (line.data_length ?? 0);
      const all = data_end + (line.payload_length ?? 0);
      if (this.bytes.length < all) return;
      const data = { ...line.data, ...(line.data_length ? JSON.parse(this.bytes.toString("utf8", end + 1, data_end)) : {}) };
      this.events.push({ type: line.type, data, payload: this.bytes.subarray(data_end, all) });
      this.bytes = this.bytes.subarray(all);
      this.waiting.splice(0).forEach((wake) => wake());
    }
  }
  end() {
    this.closed = true;
    this.waiting.splice(0).forEach((wake) => wake());
  }

  send(...args) {
    this.socket.write(event(...args));
  }
  raw(bytes) {
    this.socket.write(bytes);
  }
  // The next event; null: the server has closed.
  async next() {
    const late = Date.now() + 60_000 * slowness;
    while (!this.events.length && !this.closed) {
      await new Promise((wake) => {
        this.waiting.push(wake);
        setTimeout(wake, 1000).unref();
      });
      assert.ok(Date.now() < late, "waited in vain for an event");
    }
    if (this.events.length) return this.events.shift();
    assert.equal(this.bytes.length, 0, "a part of an event");
    return null;
  }
  // Events up to the first of this type: {types, sound, format, data of the last}. A run of audio-chunk is one type.
  async until(type) {
    const heard = { types: [], chunks: [] };
    for (;;) {
      const one = await this.next();
      assert.ok(one, `closed after ${heard.types}`);
      if (one.type === "audio-start") this.format = one.data;
      if (one.type === "audio-chunk") {
        assert.deepEqual(one.data, this.format, "each chunk has the format of its start");
        assert.ok(one.payload.length > 0 && one.payload.length % 2 === 0);
        heard.chunks.push(one.payload);
      }
      if (one.type !== heard.types.at(-1) || one.type !== "audio-chunk") heard.types.push(one.type);
      if (one.type !== type) continue;
      return { ...heard, format: this.format, sound: Buffer.concat(heard.chunks), data: one.data };
    }
  }
  async say(text, voice, options) {
    this.send("synthesize", { text, ...(voice && { voice }) }, options);
    return this.until("audio-stop");
  }
  close() {
    this.socket.destroy();
  }
}
