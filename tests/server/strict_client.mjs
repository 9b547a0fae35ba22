// A client of HTTP/1.1 that hides nothing: whether an answer had begun, whether it is whole, and what came unasked.
import net from "node:net";

// Reads one answer from pieces of a connection.
class Reading {
  status = 0;
  headers = {};
  isWhole = false;
  #rest = Buffer.alloc(0);
  #body = [];
  #next = "head";
  #left = 0;

  // What is left behind the end of the answer stays in `rest`.
  add(bytes) {
    this.#rest = this.#rest.length ? Buffer.concat([this.#rest, bytes]) : bytes;
    while (!this.isWhole && this.#step());
  }
  get body() { return Buffer.concat(this.#body); }
  get rest() { return this.#rest; }

  #step() {
    if (this.#next === "data") return this.#data();
    const line = this.#until(this.#next === "head" ? "\r\n\r\n" : "\r\n");
    if (line === undefined) return false;
    if (this.#next === "head") this.#head(line);
    else if (this.#next === "size") this.#size(line);
    else if (this.#next === "end of data") this.#next = "size";
    else if (line === "") this.isWhole = true;  // the end of the trailer
    return true;
  }

  #until(mark) {
    const at = this.#rest.indexOf(mark);
    if (at < 0) return undefined;
    const text = this.#rest.toString("latin1", 0, at);
    this.#rest = this.#rest.subarray(at + mark.length);
    return text;
  }

  #head(text) {
    const [first, ...lines] = text.split("\r\n");
    this.status = Number(first.match(/^HTTP\/1\.1 (\d{3}) /)?.[1] ?? 0);
    for (const line of lines) {
      const colon = line.indexOf(":");
      this.headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    this.isChunked = this.headers["transfer-encoding"] === "chunked";
    if (this.status === 0 || (!this.isChunked && this.headers["content-length"] === undefined)) throw new Error(`an answer without a length: ${text}`);
    this.#next = this.isChunked ? "size" : "data";
    this.#left = Number(this.headers["content-length"] ?? 0);
    if (!this.isChunked && this.#left === 0) this.isWhole = true;
  }

  #size(line) {
    if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`no size of a chunk: "${line.slice(0, 40)}"`);
    this.#left = parseInt(line, 16);
    this.#next = this.#left > 0 ? "data" : "trailer";
  }

  #data() {
    if (this.#rest.length === 0) return false;
    const piece = this.#rest.subarray(0, this.#left);
    this.#body.push(piece);
    this.#rest = this.#rest.subarray(piece.length);
    this.#left -= piece.length;
    if (this.#left > 0) return false;
    if (this.isChunked) this.#next = "end of data";
    else this.isWhole = true;
    return true;
  }
}

// One connection, kept from request to request.
export class StrictClient {
  strays = 0;  // bytes that no request had asked for

  constructor(port) {
    this.port = port;
  }

  // {status, headers, body, hasBegun, isWhole, error}; it never throws. After `patience_ms` without the end: an error.
  async post(path, headers, body, patience_ms) {
    const reading = new Reading();
    let bytes = 0, error;
    try {
      const socket = await this.#connected();
      await new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`no end after ${patience_ms / 1000} s`)), patience_ms);
        const settle = (how, value) => {
          clearTimeout(late);
          this.#take = (more) => (this.strays += more.length);
          this.#gone = () => {};
          how(value);
        };
        this.#gone = (why) => settle(reject, new Error(why));
        this.#take = (more) => {
          bytes += more.length;
          try {
            reading.add(more);
          } catch (wrong) {
            return settle(reject, wrong);
          }
          if (!reading.isWhole) return;
          this.strays += reading.rest.length;
          settle(resolve);
        };
        const lines = Object.entries({ host: "127.0.0.1", "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers });
        socket.write(`POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`);
      });
      if (reading.headers.connection === "close") this.close();
    } catch (caught) {
      error = caught.message;
      this.close();
    }
    return { status: reading.status, headers: reading.headers, body: reading.body, hasBegun: bytes > 0, isWhole: reading.isWhole, error };
  }

  close() {
    this.#socket?.destroy();
    this.#socket = undefined;
  }

  #socket;
  #take = () => {};
  #gone = () => {};

  async #connected() {
    if (this.#socket && !this.#socket.destroyed) return this.#socket;
    const socket = net.connect(this.port, "127.0.0.1");
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    socket.on("data", (bytes) => this.#socket === socket && this.#take(bytes));
    socket.on("error", () => {});
    socket.on("end", () => socket.destroy());
    socket.on("close", () => this.#socket === socket && this.#gone("the connection has ended"));
    this.#socket = socket;
    return socket;
  }
}
