// Clients that mean harm, or are broken. Each test ends by proving that the server still speaks.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { after, afterEach, before, test } from "node:test";
import { deflateSync, gzipSync } from "node:zlib";
import { msgpack } from "./clients.mjs";
import { sanitized, sharedServer, until } from "./harness.mjs";
import { form, raw } from "./http.mjs";
import { clip, endlessFlac } from "./sound.mjs";

const { encode } = await msgpack();
const bomb = gzipSync(Buffer.alloc(64 << 20));
// No connection is kept: the server closes idle ones while this process is busy.
const server = sharedServer({ before, after }, { flags: ["--max-body-mb", "16"], agent: new http.Agent() });
// Waits for nobody.
const strict = sharedServer({ before, after }, {
  flags: ["--header-timeout-s", "1", "--body-timeout-s", "1", "--idle-timeout-s", "2", "--write-timeout-s", "2"],
  agent: new http.Agent(),
});
afterEach(async () => {
  await server().assertSpeaks();
  await strict().assertSpeaks();
});

const postTo = (which, path, body, type = "application/json") => which.http.post(path, body, { headers: { "content-type": type } });
const post = (...request) => postTo(server(), ...request);
const refused = (answer, what) =>
  assert.ok(answer.status >= 400 && answer.status < 500, `${what}: ${answer.status} ${answer.text?.().slice(0, 200)}`);
const jsonRoutes = ["/v1/tts", "/v1/audio/speech", "/v1/tts/batch", "/v1/vqgan/encode", "/v1/vqgan/decode",
  "/v1/references/add", "/v1/references/update", "/invocations"];
const head = (path, more = "", type = "application/json") =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\n${more}\r\n`;

test("a million chunks of one byte", async () => {
  const chunk = (byte) => `1\r\n${byte}\r\n`;
  const block = chunk("x").repeat(10_000);
  const nonsense = await raw(server().port,
    [head("/v1/tts", "Transfer-Encoding: chunked\r\nConnection: close\r\n"), ...Array(100).fill(block), "0\r\n\r\n"], { patience_ms: 120_000 });
  assert.ok(nonsense.status >= 400 && nonsense.status < 500, nonsense.text.slice(0, 200));
  const sense = [...JSON.stringify({ text: "Good morning.", seed: 1 })].map(chunk).join("");
  const spoken = await raw(server().port,
    [head("/v1/tts", "Transfer-Encoding: chunked\r\nConnection: close\r\n"), sense, "0\r\n\r\n"]);
  assert.equal(spoken.status, 200, spoken.text.slice(0, 200));
});

test("a body of 100 MB, declared or not", async () => {
  const declared = await raw(server().port, [head("/v1/tts", "Content-Length: 104857600\r\n"), Buffer.alloc(1 << 16, 32)]);
  assert.equal(declared.status, 413, declared.text.slice(0, 200));
  const before_it = server().residentBytes();
  const piece = Buffer.concat([Buffer.from("100000\r\n"), Buffer.alloc(1 << 20, 32), Buffer.from("\r\n")]);
  const chunked = await raw(server().port, [head("/v1/tts", "Transfer-Encoding: chunked\r\n"), ...Array(100).fill(piece)]);
  assert.equal(chunked.status, 413, chunked.text.slice(0, 200));
  if (!sanitized) assert.ok(server().residentBytes() - before_it < 64 << 20, "the body was kept");
});

test("JSON that is deep, wide, broken or not UTF-8", async () => {
  const deep = "[".repeat(200_000);
  const bodies = {
    deep, "deep and closed": deep + "]".repeat(200_000), "deep objects": '{"a":'.repeat(100_000),
    "deep in a known field": `{"text": ${"[".repeat(100)}${"]".repeat(100)}}`,
    wide: `{"text":"x","references":[${"0,".repeat(2_000_000)}0]}`, "many names": `{${Array.from({ length: 50_000 }, (_, i) => `"f${i}":0`)}}`,
    twice: '{"text":"a","text":"b"}', empty: "", blank: "   ", "a list": "[]", "a number": "1", "null": "null",
    cut: '{"text":"Hel', trailing: '{"text":"Hello."} x', "single quotes": "{'text':'x'}", NaN: '{"text":"x","seed":NaN}',
    "half a pair": '{"text":"\\ud800"}', "bad escape": '{"text":"\\x41"}', "control character": '{"text":"a\u0001b"}',
    "not UTF-8": Buffer.from([...Buffer.from('{"text":"'), 0xff, 0xfe, ...Buffer.from('"}')]),
    "overlong UTF-8": Buffer.from([...Buffer.from('{"text":"'), 0xc0, 0xaf, ...Buffer.from('"}')]),
    "a surrogate in UTF-8": Buffer.from([...Buffer.from('{"text":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]),
    "UTF-16": Buffer.from('{"text":"x"}', "utf16le"), NUL: Buffer.alloc(100),
  };
  for (const [what, body] of Object.entries(bodies)) {
    for (const path of jsonRoutes) refused(await post(path, body), `${path}: ${what}`);
  }
});

test("MessagePack bombs", async () => {
  const bytes = (...list) => Buffer.from(list);
  const field = (value) => Buffer.concat([bytes(0x81), Buffer.from(encode("text")), value]);
  const bodies = {
    "a list of four billion": bytes(0xdd, 0xff, 0xff, 0xff, 0xff), "a map of four billion": bytes(0xdf, 0xff, 0xff, 0xff, 0xff),
    "a text of four gigabytes": field(bytes(0xdb, 0xff, 0xff, 0xff, 0xff, 65)), "bytes of four gigabytes": field(bytes(0xc6, 0xff, 0xff, 0xff, 0xff, 65)),
    deep: Buffer.alloc(200_000, 0x91), "deep maps": Buffer.concat(Array(50_000).fill(bytes(0x81, 0xa1, 0x61))),
    "millions of nils": Buffer.concat([bytes(0xdd, 0, 0x50, 0, 0), Buffer.alloc(0x500000, 0xc0)]),
    "millions of empty lists": Buffer.concat([bytes(0xdd, 0, 0x50, 0, 0), Buffer.alloc(0x500000, 0x90)]),
    extension: field(bytes(0xc7, 2, 1, 0, 0)), "never used byte": bytes(0xc1), "a name that is a number": bytes(0x81, 1, 1),
    "not UTF-8": field(bytes(0xa2, 0xff, 0xfe)), NaN: Buffer.from(encode({ text: "x", temperature: NaN })),
    infinity: Buffer.from(encode({ text: "x", top_p: Infinity })), "2^64 - 1": field(bytes(0xcf, 255, 255, 255, 255, 255, 255, 255, 255)),
    "seed 2^63": Buffer.concat([bytes(0x82), Buffer.from(encode("text")), Buffer.from(encode("x")), Buffer.from(encode("seed")), bytes(0xcf, 128, 0, 0, 0, 0, 0, 0, 0)]),
    twice: Buffer.concat([bytes(0x82), ...["text", "a", "text", "b"].map((each) => Buffer.from(encode(each)))]),
    trailing: Buffer.concat([Buffer.from(encode({ text: "x" })), bytes(0)]), cut: Buffer.from(encode({ text: "Hello." })).subarray(0, 8),
    empty: Buffer.alloc(0),
  };
  for (const [what, body] of Object.entries(bodies)) refused(await post("/v1/tts", body, "application/msgpack"), what);
});

test("forms that are broken or endless", async () => {
  const type = (boundary) => `multipart/form-data; boundary=${boundary}`;
  const part = (name, value) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  for (const [what, body, contentType] of [
    ["no boundary", "x", "multipart/form-data"], ["empty boundary", "x", type("")], ["long boundary", "x", type("b".repeat(5000))],
    ["no end", part("text", "Hello."), type("b")], ["no name", '--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n', type("b")],
    ["no blank line", "--b\r\nContent-Disposition: form-data; name=text\r\n--b--\r\n", type("b")],
    ["header without end", `--b\r\nX: ${"y".repeat(200_000)}`, type("b")], ["many parts", part("x", "1").repeat(60_000) + "--b--\r\n", type("b")],
    ["a number that is none", part("text", "Hi.") + part("seed", "1e999") + "--b--\r\n", type("b")],
    ["not UTF-8", Buffer.concat([Buffer.from('--b\r\nContent-Disposition: form-data; name="text"\r\n\r\n'), Buffer.from([255, 254]), Buffer.from("\r\n--b--\r\n")]), type("b")],
    ["nothing", "--b--\r\n", type("b")],
  ]) {
    refused(await post("/v1/tts", body, contentType), what);
    refused(await post("/v1/references/add", body, contentType), what);
  }
});

test("clips that are bombs", async () => {
  const flac = endlessFlac(12);
  for (const [what, audio] of Object.entries({
    "hours of FLAC": flac, "hours that it does not admit": endlessFlac(12, 16000, { declared: 0n }),
    "years declared": endlessFlac(0.001, 16000, { declared: 0xfffffffffn }), "high rate": endlessFlac(1, 655350),
    "wav with huge sizes": Buffer.concat([clip(0.1).subarray(0, 40), Buffer.from([0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(100)]),
    "half a wav": clip(1).subarray(0, 30), "zip": Buffer.from("PK\x03\x04" + "x".repeat(1000)), "nothing": Buffer.alloc(0),
    "a riff in a riff": Buffer.concat([clip(0.01), clip(0.01)]).subarray(0, 200),
  })) {
    const base64 = audio.toString("base64");
    refused(await post("/v1/tts", { text: "Hi.", references: [{ audio: base64, text: "x" }] }), `${what}, inline`);
    refused(await post("/v1/vqgan/encode", { audios: [base64] }), `${what}, encode`);
    const { body, headers } = form({ id: "bomb", text: "x", audio: { name: "a.wav", data: audio } });
    refused(await server().http.post("/v1/references/add", body, { headers }), `${what}, add`);
    const batch = await post("/v1/tts/batch", { items: [{ text: "Hi.", reference_audio: base64, reference_text: "x" }] });
    assert.ok(batch.status >= 400 ? batch.status < 500 : batch.json().results[0].success === false, `${what}, batch`);
  }
});

test("bodies that are compressed, and bombs", async () => {
  const squeezed = (body, coding = "gzip") => server().http.post("/v1/tts", body, { headers: { "content-type": "application/json", "content-encoding": coding } });
  const sentence = JSON.stringify({ text: "Good morning.", seed: 1 });
  const plain = await post("/v1/tts", sentence);
  for (const [coding, pack] of [["gzip", gzipSync], ["deflate", deflateSync]]) {
    const spoken = await squeezed(pack(sentence), coding);
    assert.equal(spoken.status, 200, `${coding}: ${spoken.text().slice(0, 200)}`);
    assert.ok(spoken.body.equals(plain.body), `${coding}: other sound`);
  }
  const bytes_before = server().residentBytes();
  assert.equal((await squeezed(bomb)).status, 413, "64 MB of zeros");
  refused(await squeezed(gzipSync(gzipSync(sentence))), "packed twice: the inside is no JSON");
  if (!sanitized) assert.ok(server().residentBytes() - bytes_before < 32 << 20, "the bomb went off");
  for (const [what, body] of Object.entries({ cut: gzipSync(sentence).subarray(0, 20), "no gzip": sentence, "rubbish behind": Buffer.concat([gzipSync(sentence), Buffer.from("xyz")]) }))
    assert.equal((await squeezed(body)).status, 400, what);
  for (const coding of ["br", "zstd", "gzip, gzip"]) {
    const refusal = await squeezed("x", coding);
    assert.equal(refusal.status, 415, coding);
    assert.equal(refusal.headers["accept-encoding"], "gzip, deflate");
    assert.match(refusal.text(), /Content-Encoding: expected gzip, deflate or none/);
  }
});

test("requests that are not HTTP", async () => {
  const both = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n";
  for (const [what, text, status] of [
    ["noise", "\x00\x01\x02\x03\r\n\r\n", 400], ["TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400],
    ["HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0], ["no host", "GET /health HTTP/1.1\r\n\r\n", 400],
    ["length and chunks", head("/v1/tts", both) + "0\r\n\r\n", 400], ["two lengths", head("/v1/tts", "Content-Length: 2\r\nContent-Length: 3\r\n") + "{}x", 400],
    ["a folded field", "GET /health HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400], ["negative length", head("/v1/tts", "Content-Length: -1\r\n"), 400], ["unknown coding", head("/v1/tts", "Transfer-Encoding: gzip\r\n") + "{}", 0],
    ["coding twice", head("/v1/tts", "Transfer-Encoding: chunked, chunked\r\n") + "0\r\n\r\n", 0], ["bad chunk size", head("/v1/tts", "Transfer-Encoding: chunked\r\n") + "zz\r\n", 400],
    ["endless chunk size", head("/v1/tts", "Transfer-Encoding: chunked\r\n") + "ffffffffffffffffff\r\n", 0],
    ["long head", `GET /health HTTP/1.1\r\nHost: a\r\nX: ${"y".repeat(100_000)}\r\n\r\n`, 431],
    ["long path", `GET /${"y".repeat(100_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 0], ["bad escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 0],
    ["NUL in the path", "GET /a%00b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0], ["header injection", "GET /health HTTP/1.1\r\nHost: a\r\nx-request-id: a%0d%0aEvil: 1\r\nConnection: close\r\n\r\n", 200],
  ]) {
    const answer = await raw(server().port, [text], { patience_ms: 15_000 });
    assert.ok(answer.closed_by_server, `${what}: the connection stays open`);
    if (status) assert.equal(answer.status, status, `${what}: ${answer.text.slice(0, 120)}`);
    else assert.ok(answer.status >= 400 && answer.status < 600 && answer.status !== 500, `${what}: ${answer.text.slice(0, 120)}`);
    assert.equal(answer.text.match(/HTTP\/1\.1 \d{3} /g).length, 1, `${what}: answered twice`);
    assert.ok(!/\r\nEvil:/i.test(answer.text), what);
  }
});

test("pipelined requests are answered one after the other", async () => {
  const get = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
  const answer = await raw(server().port, [get.repeat(20) + get.replace("Host", "Connection: close\r\nHost")]);
  assert.equal(answer.text.match(/HTTP\/1\.1 200/g).length, 21);
});

test("slowloris: heads and bodies that never end", async () => {
  const drip = (text) => [...text].flatMap((byte) => [byte, 150]);
  const heads = Array.from({ length: 100 }, () => raw(strict().port, ["GET /health HT", ...drip("TP/1.1\r\nHost: a\r\nX-Slow: ".repeat(3))]));
  const bodies = Array.from({ length: 50 }, () => raw(strict().port, [head("/v1/tts", "Content-Length: 1000\r\n"), '{"text": ']));
  const silent = Array.from({ length: 50 }, () => raw(strict().port, []));
  await strict().assertSpeaks();
  for (const answer of await Promise.all([...heads, ...bodies])) {
    assert.ok(answer.closed_by_server);
    assert.ok([0, 408].includes(answer.status), answer.text.slice(0, 100));
  }
  for (const answer of await Promise.all(silent)) assert.ok(answer.closed_by_server, "a silent connection stays open");
});

test("an idle connection is closed, a half-open one too", async () => {
  const get = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const half_close of [false, true]) {
    const idle = await raw(strict().port, [get], { half_close });
    assert.ok(idle.closed_by_server);
    if (!half_close) assert.equal(idle.status, 200);
  }
});

const long = "Every morning the fishermen went out before the sun was up, and came back at noon. ".repeat(60);

test("readers that never read are disconnected and block nobody", async () => {
  const body = JSON.stringify({ text: long, streaming: true });
  const request = head("/v1/tts", `Content-Length: ${body.length}\r\n`) + body;
  const sockets = Array.from({ length: 8 }, () => {
    const socket = net.connect({ port: strict().port, host: "127.0.0.1", highWaterMark: 1024 }, () => socket.write(request));
    socket.pause().on("error", () => {});
    return socket;
  });
  const quick = await postTo(strict(), "/v1/tts", { text: "Good morning.", seed: 1 });
  assert.equal(quick.status, 200);
  sockets.slice(4).forEach((socket) => socket.destroy());
  await until("the slow readers to be let go", async () => (await strict().speaking()) === 0, 60);
  sockets.forEach((socket) => socket.destroy());
  const reason = /warning +answer cut off: the client took nothing for write_timeout_s id=\S+ route=\/v1\/tts/g;
  await until("the reason in the log", () => (strict().log.match(reason) ?? []).length >= 4);
});

test("clients that vanish are noticed within moments, whatever they had sent", async () => {
  const body = JSON.stringify({ text: long, streaming: true });
  for (const cut of ["before the answer", "after the first sound", "reset"]) {
    const sockets = await Promise.all(Array.from({ length: 12 }, () => new Promise((resolve) => {
      const socket = net.connect(server().port, "127.0.0.1", () => {
        socket.write(head("/v1/tts", `Content-Length: ${body.length}\r\n`) + body);
        if (cut === "before the answer") resolve(socket);
      });
      socket.on("error", () => {});
      socket.once("data", () => resolve(socket));
    })));
    for (const socket of sockets) cut === "reset" ? socket.resetAndDestroy() : socket.destroy();
    await until(`nobody to speak to, ${cut}`, async () => (await server().speaking()) === 0, 10);
  }
});

test("thousands of connections that come and go", async () => {
  for (let i = 0; i < 20; ++i) {
    await Promise.all(Array.from({ length: 100 }, () => new Promise((resolve) => {
      const socket = net.connect(server().port, "127.0.0.1", () => socket.destroy());
      socket.on("close", resolve).on("error", () => {});
    })));
  }
  await until("no connections but ours", async () => (await server().metrics()).value("shoal_http_connections") <= 2, 10);
});
