// Plain HTTP for the tests: whole answers, answers in the making, and bytes on a socket.
import { createHash } from "node:crypto";
import http from "node:http";
import net from "node:net";

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

export class Answer {
  constructor(message, body, chunks) {
    this.status = message.statusCode;
    this.headers = message.headers;
    this.type = (message.headers["content-type"] ?? "").split(";")[0];
    this.whole = message.complete;
    this.body = body;
    this.chunks = chunks;
  }
  text() {
    return this.body.toString("utf8");
  }
  json() {
    try {
      return JSON.parse(this.text());
    } catch {
      throw new Error(`not JSON (status ${this.status}): ${this.text().slice(0, 300)}`);
    }
  }
}

export class Http {
  constructor(port) {
    this.port = port;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: Infinity });
  }

  close() {
    this.agent.destroy();
  }

  // body: Buffer or text as it is, anything else as JSON. Returns a whole Answer; an answer that was cut off has
  // whole == false.
  async ask(method, path, { body, headers = {}, agent = this.agent } = {}) {
    const message = await this.open(method, path, { body, headers, agent });
    return collect(message);
  }

  // The answer once its head is there: an http.IncomingMessage.
  open(method, path, { body, headers = {}, agent = this.agent } = {}) {
    const raw = body === undefined || typeof body === "string" || Buffer.isBuffer(body) || body instanceof Uint8Array;
    const bytes = raw ? body : JSON.stringify(body);
    const type = bytes !== undefined && !headers["content-type"] ? { "content-type": "application/json" } : {};
    const length = bytes !== undefined ? { "content-length": Buffer.byteLength(bytes) } : {};
    return new Promise((resolve, reject) => {
      const request = http.request(
        { host: "127.0.0.1", port: this.port, method, path, agent, headers: { ...type, ...length, ...headers } },
        resolve);
      request.on("error", reject);
      request.end(bytes);
    });
  }

  get(path, options) {
    return this.ask("GET", path, options);
  }
  post(path, body, options = {}) {
    return this.ask("POST", path, { ...options, body });
  }
}

export function collect(message) {
  return new Promise((resolve) => {
    const chunks = [];
    message.on("data", (chunk) => chunks.push(chunk));
    const done = () => resolve(new Answer(message, Buffer.concat(chunks), chunks));
    message.on("end", done);
    message.on("error", done);  // cut off: message.complete says so
  });
}

// Writes bytes as they are and returns everything that came back until the server closed. pieces: texts, Buffers, or
// numbers of milliseconds to wait. `patience_ms` after the first byte, or 30 s without one, it is closed from here.
export function raw(port, pieces, { patience_ms = 30_000, half_close = false } = {}) {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    const received = [];
    let closed_by_server = true;
    const leave = () => {
      closed_by_server = false;
      socket.destroy();
    };
    let limit = setTimeout(leave, Math.max(patience_ms, 30_000));
    socket.once("data", () => {
      clearTimeout(limit);
      limit = setTimeout(leave, patience_ms);
    });
    socket.on("data", (bytes) => received.push(bytes));
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(limit);
      const text = Buffer.concat(received).toString("latin1");
      resolve({ text, closed_by_server, status: Number(text.match(/^HTTP\/1\.1 (\d+)/)?.[1] ?? 0) });
    });
    socket.on("connect", async () => {
      for (const piece of pieces) {
        if (socket.destroyed) return;
        if (typeof piece === "number") await new Promise((wake) => setTimeout(wake, piece));
        else if (!socket.write(piece)) await drained(socket);
      }
      if (half_close) socket.end();
    });
  });
}

function drained(socket) {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("drain", done).off("close", done);
      resolve();
    };
    socket.on("drain", done).on("close", done);
  });
}

// A form as browsers send it: fields are texts, or {name, type, data} for a file; a list repeats its name.
export function form(fields) {
  const boundary = "----shoal-form-5d41402abc";
  const parts = [];
  for (const [name, values] of Object.entries(fields)) {
    for (const value of Array.isArray(values) ? values : [values]) {
      const file = value && value.data !== undefined;
      parts.push(Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"` +
        (file ? `; filename="${value.name}"\r\nContent-Type: ${value.type ?? "application/octet-stream"}` : "") + "\r\n\r\n"));
      parts.push(Buffer.from(file ? value.data : String(value)), Buffer.from("\r\n"));
    }
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  return { body: Buffer.concat(parts), headers: { "content-type": `multipart/form-data; boundary=${boundary}` } };
}
