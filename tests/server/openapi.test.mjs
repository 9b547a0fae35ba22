// /openapi.json is valid, and true: what it names is taken, what it does not name is refused.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { openapiValidator } from "./clients.mjs";
import { sharedServer } from "./harness.mjs";
import { kokoroFlags, kokoroFolder } from "./kokoro_folder.mjs";
import {
  documentOf, exampleOf, fieldsOf, filled, formsOf, kindOf, operations, smallBodies, withField,
} from "./openapi_document.mjs";
import { clip } from "./sound.mjs";

const kokoro = kokoroFolder(["af_one", "af_two"]);
const server = sharedServer({ before, after }, { flags: kokoroFlags(kokoro), env: { SHOAL_ADMIN_KEY: "open" } });
after(() => rmSync(kokoro, { recursive: true, force: true }));
const headers = { authorization: "Bearer open" };

async function bodies() {
  const model = (await server().http.get("/v1/models")).json().data[0].id;
  return smallBodies(clip(1).toString("base64"), model, "af_one");
}

test("the document is valid OpenAPI", async () => {
  const Validator = await openapiValidator();
  const result = await new Validator().validate(await documentOf(server()));
  assert.ok(result.valid, JSON.stringify(result.errors, null, 1)?.slice(0, 2000));
});

test("/docs shows it", async () => {
  const docs = await server().http.get("/docs");
  assert.equal(docs.status, 200);
  assert.equal(docs.type, "text/html");
  assert.ok(docs.text().includes("/v1/tts"));
});

test("the document lists the expected routes, and each listed route answers", async () => {
  const document = await documentOf(server());
  const named = operations(document).map(({ method, path }) => `${method} ${path}`);
  for (const route of [
    "POST /v1/audio/speech", "GET /v1/models", "GET /v1/audio/voices", "POST /v1/tts", "POST /v1/references/add",
    "GET /v1/references/list", "DELETE /v1/references/delete", "POST /v1/references/update", "POST /v1/vqgan/encode",
    "POST /v1/vqgan/decode", "GET /v1/health", "POST /v1/tts/batch", "GET /v1/audio/stream", "GET /health", "GET /ready",
    "GET /metrics", "GET /v1/stats", "POST /v1/admin/reload", "GET /ping", "POST /invocations", "GET /openapi.json", "GET /docs",
  ]) assert.ok(named.includes(route), `${route} is missing`);
  for (const { method, path, operation } of operations(document)) {
    assert.ok(operation.summary, `${method} ${path} has no summary`);
    if (method !== "GET") continue;
    const answer = await server().http.ask(method, path.replace(/\{\w+\}/, "no-such"), { headers });
    assert.ok(path.includes("{") || path === "/" || answer.status !== 404, `${method} ${path}: ${answer.status}`);
    assert.notEqual(answer.status, 405, `${method} ${path}`);
    assert.ok(answer.status < 500, `${method} ${path}: ${answer.status}`);
  }
});

test("every body has its fields named, with a help for each", async () => {
  const document = await documentOf(server());
  for (const { method, path, schema, types } of operations(document)) {
    if (!types.length || types.includes("*/*")) continue;
    assert.ok(schema?.properties, `${method} ${path}: no fields`);
    for (const { where, schema: field } of fieldsOf(document, schema)) {
      assert.ok(field.description, `${method} ${path}: ${where.join(".")} has no description`);
      assert.ok(kindOf(field) || field.oneOf || field.anyOf, `${method} ${path}: ${where.join(".")} has no type`);
    }
  }
});

test("required bodies are required, and optional ones may be omitted", async () => {
  const document = await documentOf(server());
  for (const { method, path, operation, types, query } of operations(document)) {
    if (!types.length) continue;
    const words = query.includes("reference_id") ? "?reference_id=no-such&format=json" : "";
    const answer = await server().http.ask(method, path + words, { headers: { ...headers, "content-type": "application/json" } });
    const what = `${method} ${path} without a body: ${answer.status} ${answer.text().slice(0, 160)}`;
    if (operation.requestBody.required) assert.ok([400, 415, 422].includes(answer.status), what);
    else assert.equal(answer.status, words ? 404 : 200, what);
  }
});

const elevenLabs = Object.fromEntries([
  ...["", "/stream", "/with-timestamps", "/stream/with-timestamps"].map((way) =>
    [`POST /v1/text-to-speech/{voice_id}${way}`, "enable_logging,optimize_streaming_latency,output_format"]),
  ...["stream-input", "multi-stream-input"].map((way) => [`GET /v1/text-to-speech/{voice_id}/${way}`,
    "apply_language_text_normalization,apply_text_normalization,authorization,auto_mode,enable_logging,enable_ssml_parsing," +
    "inactivity_timeout,language_code,model_id,optimize_streaming_latency,output_format,seed,single_use_token,sync_alignment"]),
]);

test("the document lists exactly the query parameters that are read", async () => {
  const document = await documentOf(server());
  const named = operations(document).filter(({ query }) => query.length);
  assert.deepEqual(Object.fromEntries(named.map(({ method, path, query }) => [`${method} ${path}`, query.toSorted().join()])), {
    "GET /v1/audio/voices": "legacy,model", "POST /v1/references/add": "format,model", "GET /v1/references/list": "format,model",
    "DELETE /v1/references/delete": "format,model,reference_id", "POST /v1/references/update": "format,model",
    "POST /v1/vqgan/encode": "format,model", "POST /v1/vqgan/decode": "format,model", "GET /v1/stats": "model",
    "GET /test/gpu": "model", "GET /v1/realtime": "call_id,intent,model",
    "GET /model": "author_id,language,page_number,page_size,self,sort_by,tag,title,title_language", ...elevenLabs,
  });
  const small = await bodies();
  for (const { method, path, query, schema } of named) {
    const body = schema && { ...filled(document, schema, small[`${method} ${path}`]) };
    const ask = (words) => server().http.ask(method, `${path}?${words}`, { headers, body });
    if (path === "/v1/realtime") continue;  // a WebSocket
    if (query.includes("model")) assert.equal((await ask("model=no-such")).status, 404, `${method} ${path}`);
    if (!query.includes("format")) continue;
    for (const [format, type] of [["json", "application/json"], ["msgpack", "application/msgpack"]]) {
      const answer = await ask(`format=${format}`);
      if (answer.status === 200) assert.equal(answer.type, type, `${method} ${path}`);
    }
  }
  const voices = (await server().http.get("/v1/audio/voices?legacy=true")).json().voices;
  assert.ok(voices.length && voices.every((voice) => typeof voice === "string"));
});

test("every documented form of a field or body is accepted", async () => {
  const document = await documentOf(server());
  const small = await bodies();
  let asked = 0;
  for (const { method, path, schema, forms } of operations(document)) {
    const body = path === "/invocations" ? undefined : small[`${method} ${path}`];
    for (const { where, schema: field } of body ? fieldsOf(document, schema) : []) {
      for (const form of field.oneOf ? formsOf(document, field) : []) {
        const filledIn = withField(body, where, exampleOf(document, form, "default"));
        const answer = await server().http.ask(method, path, { headers, body: filledIn });
        // Voices for the speakers of a text: the form is right, this server's models speak in one voice.
        const oneVoice = answer.status === 400 && answer.text().includes("this model speaks a text in one voice");
        const what = `${method} ${path}: ${JSON.stringify(filledIn).slice(-300)}: ${answer.text().slice(0, 200)}`;
        assert.ok(answer.status === 200 || oneVoice, what);
        ++asked;
      }
    }
    if (forms.length < 2) continue;  // mixes
    for (const form of forms) {
      const text = JSON.stringify(exampleOf(document, form, "af_one+af_two"));
      const answer = await server().http.ask(method, path, { headers, body: text });
      assert.equal(answer.status, 200, `${method} ${path}: ${text}: ${answer.text().slice(0, 200)}`);
      ++asked;
    }
  }
  assert.ok(asked >= 5, `only ${asked} forms`);
});

// Something that the document allows for the field; undefined: the small body has it already, or it needs more than
// a value.
function allowed(schema) {
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.enum) return schema.enum[0];
  switch (kindOf(schema)) {
    case "boolean":
      return false;
    case "integer":
      return Math.max(Math.ceil(schema.minimum ?? 1), Math.min(8, Math.floor(schema.maximum ?? 8)));
    case "number":
      return schema.minimum !== undefined && schema.maximum !== undefined ? (schema.minimum + schema.maximum) / 2 : 1;
    case "string":
      return "";
    case "array":
      return [];
    default:
      return null;
  }
}

test("a documented field is accepted, or refused for a reason other than its name", async () => {
  const document = await documentOf(server());
  const small = await bodies();
  for (const { method, path, schema } of operations(document)) {
    const body = small[`${method} ${path}`];
    if (!body || path === "/invocations") continue;  // its fields are those of three routes: one tells which
    for (const { where, schema: field, required } of fieldsOf(document, schema)) {
      if (required || where.at(-1) === "timeout") continue;
      const answer = await server().http.ask(method, path, { headers, body: withField(body, where, allowed(field)) });
      const what = `${method} ${path}: ${where.join(".")} = ${JSON.stringify(allowed(field))}`;
      if (answer.status === 200) continue;
      assert.ok(answer.status >= 400 && answer.status < 500, `${what}: ${answer.status}`);
      assert.doesNotMatch(answer.text(), /unknown|no such field|not a field/i, what);
    }
  }
});

test("an undocumented field is refused by name, with the closest known name", async () => {
  const document = await documentOf(server());
  const small = await bodies();
  for (const { method, path, schema } of operations(document)) {
    if (!schema?.properties) continue;
    const first = Object.keys(schema.properties)[0];
    const body = { ...filled(document, schema, small[`${method} ${path}`]), [`${first}x`]: 1 };
    const answer = await server().http.ask(method, path, { headers, body });
    assert.ok([400, 422].includes(answer.status), `${method} ${path}: ${answer.status} ${answer.text().slice(0, 200)}`);
    assert.ok(answer.text().includes(`${first}x`), `${method} ${path}: ${answer.text()}`);
  }
});

test("required fields are required", async () => {
  const document = await documentOf(server());
  const small = await bodies();
  for (const { method, path, schema } of operations(document)) {
    for (const name of schema?.required ?? []) {
      const body = filled(document, schema, small[`${method} ${path}`]);
      delete body[name];
      const answer = await server().http.ask(method, path, { headers, body });
      assert.ok([400, 422].includes(answer.status), `${method} ${path} without ${name}: ${answer.status}`);
      assert.ok(answer.text().includes(name), `${method} ${path}: ${answer.text()}`);
    }
  }
});

test("numbers beyond every range, in every numeric field, are refused and never answered with 5xx", async () => {
  const document = await documentOf(server());
  const small = await bodies();
  const routes = new Set();
  const literals = ["-1", "-0.5", "1e308", "-1e308", "1e400", "-1e400", "NaN", "Infinity", "-Infinity",
    "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e-400", "0x10",
    "01", "\"1\"", "true", "[]", "{}", "\"NaN\""];
  let asked = 0;
  for (const { method, path, schema } of operations(document)) {
    for (const { where, schema: field } of fieldsOf(document, schema ?? {})) {
      if (!["integer", "number"].includes(kindOf(field))) continue;
      if (field.description?.startsWith("has no effect")) continue;  // whatever it says
      const body = path === "/invocations" ? invocationWith(document, small, where[0])
        : small[`${method} ${path}`] ?? filled(document, schema);
      for (const literal of literals) {
        if (path.startsWith("/v1/admin/") && !mustBeRefused(literal, field)) continue;  // that would be another server
        const text = JSON.stringify(withField(body, where, "@@")).replace('"@@"', () => literal);
        const answer = await server().http.ask(method, path, { headers, body: text });
        const what = `${method} ${path}: ${where.join(".")} = ${literal}: ${answer.status} ${answer.text().slice(0, 160)}`;
        ++asked;
        routes.add(path);
        const timeIsUp = where.at(-1) === "timeout" && answer.status === 504;  // of a microsecond
        assert.ok(answer.status < 500 || timeIsUp, what);
        if (!mustBeRefused(literal, field)) continue;
        const ofItem = where[0] === "items";  // which has its own error
        assert.ok(answer.status >= 400 || (ofItem && !answer.json().results[0].success), what);
        // These two are numbers with something behind them.
        if (!["0x10", "01"].includes(literal)) assert.ok(answer.text().includes(where.at(-1)), what);
      }
    }
  }
  assert.ok(asked > 200, `only ${asked} requests: does the document name its numbers?`);
  for (const route of ["/v1/audio/speech", "/v1/tts", "/v1/tts/batch", "/dev/captioned_speech", "/dev/generate_from_phonemes"]) {
    assert.ok(routes.has(route), `${route} has no numbers`);
  }
  await server().assertSpeaks();
});

// /invocations has the fields of three routes: a body of one that has `field`.
function invocationWith(document, small, field) {
  const routes = ["/v1/tts", "/v1/audio/speech", "/v1/tts/batch"];
  const { path } = operations(document).find(({ path, schema }) => routes.includes(path) && field in schema.properties);
  return small[`POST ${path}`];
}

function mustBeRefused(literal, { minimum, maximum, ...field }) {
  if (literal === '"1"') return false;  // forms can write nothing else
  const broken = !/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(literal);
  if (broken) return true;
  const value = Number(literal);
  if (!Number.isFinite(value)) return true;
  if (kindOf(field) === "integer" && !Number.isInteger(value)) return true;
  if (kindOf(field) === "integer" && (value >= 2 ** 63 || value < -(2 ** 63)) && literal !== "9223372036854775807") return true;
  return value < (minimum ?? -Infinity) || value > (maximum ?? Infinity);
}
