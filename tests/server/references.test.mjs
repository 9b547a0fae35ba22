// Named voices: added, listed, heard, renamed, deleted; and no way out of their folder.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { msgpack } from "./clients.mjs";
import { sharedServer } from "./harness.mjs";
import { form } from "./http.mjs";
import { clip, endlessFlac } from "./sound.mjs";

const server = sharedServer({ before, after });
const { encode, decode } = await msgpack();
const transcript = "A low hum, and nothing else.";
const packed = { headers: { "content-type": "application/msgpack" } };
const pack = (body) => Buffer.from(encode(body));
const file = (data) => ({ name: "voice.wav", type: "audio/wav", data });

const http = () => server().http;
const addForm = (id, data = clip(2), text = transcript) => {
  const { body, headers } = form({ id, text, audio: file(data) });
  return http().post("/v1/references/add?format=json", body, { headers });
};
const list = async () => (await http().get("/v1/references/list?format=json")).json();
const remove = (reference_id) =>
  http().ask("DELETE", "/v1/references/delete?format=json", { body: { reference_id } });
const rename = (old_reference_id, new_reference_id) =>
  http().post("/v1/references/update?format=json", { old_reference_id, new_reference_id });

test("a voice is added by a form, heard, renamed and deleted", async () => {
  const added = await addForm("Ann-1 of_two");
  assert.equal(added.status, 200, added.text());
  assert.deepEqual([added.json().success, added.json().reference_id], [true, "Ann-1 of_two"]);
  assert.deepEqual((await list()).reference_ids, ["Ann-1 of_two"]);
  const folder = join(server().references, "Ann-1 of_two");
  assert.ok(readdirSync(folder).some((name) => name.endsWith(".lab") && readFileSync(join(folder, name), "utf8") === transcript));

  const say = (reference_id) => http().post("/v1/tts", { text: "Good morning.", seed: 1, reference_id });
  const own = await say(undefined);
  const ann = await say("Ann-1 of_two");
  assert.equal(ann.status, 200, ann.text());
  assert.notDeepEqual(ann.body, own.body);
  const voices = (await http().get("/v1/audio/voices")).json().voices;
  assert.ok(voices.some((voice) => (voice.id ?? voice) === "Ann-1 of_two"), JSON.stringify(voices));

  const renamed = await rename("Ann-1 of_two", "Berta");
  assert.equal(renamed.status, 200, renamed.text());
  assert.deepEqual([renamed.json().old_reference_id, renamed.json().new_reference_id], ["Ann-1 of_two", "Berta"]);
  assert.deepEqual((await say("Berta")).body, ann.body);
  assert.ok([400, 404].includes((await say("Ann-1 of_two")).status));

  assert.equal((await remove("Berta")).status, 200);
  assert.deepEqual((await list()).reference_ids, []);
  assert.ok([400, 404].includes((await say("Berta")).status));
  assert.ok(!existsSync(join(server().references, "Berta")), "asking for an unknown voice makes no folder");
});

test("voices of the model can be heard and listed but not changed", async () => {
  const voices = (await http().get("/v1/audio/voices")).json().voices.filter(({ fixed, alias_of }) => fixed && !alias_of).map(({ id }) => id);
  assert.ok(voices.length >= 6 && voices.includes("clara"), JSON.stringify(voices));
  const say = (reference_id) => http().post("/v1/tts", { text: "Good morning.", seed: 1, reference_id });
  const [own, clara] = [await say(undefined), await say("clara")];
  assert.equal(clara.status, 200, clara.text());
  assert.notDeepEqual(clara.body, own.body);
  assert.deepEqual((await list()).reference_ids, [], "what was added");
  assert.equal((await addForm("clara")).status, 409);
  for (const answer of [await remove("clara"), await rename("clara", "mine")])
    assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status}, ${answer.text()}`);
  assert.deepEqual((await say("clara")).body, clara.body);
});

test("answers are MessagePack unless the client asks for JSON", async () => {
  const added = await http().post("/v1/references/add", pack({ id: "packed", text: transcript, audio: clip(2) }), packed);
  assert.equal(added.status, 200, added.text());
  assert.equal(added.type, "application/msgpack");
  assert.equal(decode(added.body).reference_id, "packed");
  const listed = await http().get("/v1/references/list");
  assert.deepEqual(decode(listed.body).reference_ids, ["packed"]);
  const json = await http().get("/v1/references/list", { headers: { accept: "application/json" } });
  assert.deepEqual(json.json().reference_ids, ["packed"]);
  const renamed = await http().post("/v1/references/update",
    pack({ old_reference_id: "packed", new_reference_id: "repacked" }), packed);
  assert.equal(decode(renamed.body).success, true);
  const removed = await http().ask("DELETE", "/v1/references/delete", { body: pack({ reference_id: "repacked" }), ...packed });
  assert.equal(removed.status, 200);
  assert.equal(decode(removed.body).success, true);
});

test("an id that is taken or missing and a clip that is empty or no audio each have their own status", async () => {
  assert.equal((await addForm("taken")).status, 200);
  assert.equal((await addForm("other")).status, 200);
  for (const [what, answer, status] of [
    ["taken name", await addForm("taken"), [409]],
    ["rename onto a taken name", await rename("other", "taken"), [409]],
    ["rename of nobody", await rename("nobody", "somebody"), [404]],
    ["delete nobody", await remove("nobody"), [404]],
    ["no transcript", await addForm("quiet", clip(2), ""), [400, 422]],
    ["no audio", await addForm("mute", Buffer.alloc(0)), [400, 422]],
    ["not audio", await addForm("noise", Buffer.alloc(5000, 9)), [400, 422]],
    ["hours from a few kilobytes", await addForm("endless", endlessFlac(12)), [400, 413, 422]],
    ["hours that it does not admit", await addForm("endless", endlessFlac(12, 16000, { declared: 0n })), [400, 413, 422]],
  ]) assert.ok(status.includes(answer.status), `${what}: ${answer.status}, ${answer.text()}`);
  assert.deepEqual((await list()).reference_ids, ["other", "taken"]);
  await remove("taken");
  await remove("other");
  await server().assertSpeaks();
});

test("no id leads out of the folder", async () => {
  const secret = join(server().dir, "secret");
  writeFileSync(secret, "untouched");
  const ids = ["..", ".", "../secret", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "..%2fsecret", "a\0b", "", "é",
    "x".repeat(256), "voice.wav", "~root", "$(id)", "a\nb"];
  for (const id of ids) {
    for (const [what, answer] of [
      ["add", await addForm(id)],
      ["add as JSON", await http().post("/v1/references/add?format=json",
        { id, text: transcript, audio: clip(1).toString("base64") })],
      ["delete", await remove(id)],
      ["rename from", await rename(id, "fine")],
      ["rename to", await rename("fine", id)],
      ["speak", await http().post("/v1/tts", { text: "Hello.", reference_id: id || "../" })],
      ["speak, OpenAI", await http().post("/v1/audio/speech", { model: "shoal", input: "Hello.", voice: id || "../" })],
      ["batch", await http().post("/v1/tts/batch", { items: [{ text: "Hello.", voice: id || "../" }] })],
    ]) {
      const refused = answer.status >= 400 && answer.status < 500;
      const itemFailed = what === "batch" && answer.status === 200 && answer.json().results[0].success === false;
      assert.ok(refused || itemFailed, `${what} ${JSON.stringify(id)}: ${answer.status} ${answer.text().slice(0, 200)}`);
      assert.ok(!answer.text().includes(server().dir), `an error tells a path: ${answer.text()}`);
    }
  }
  assert.equal(readFileSync(secret, "utf8"), "untouched");
  assert.deepEqual(readdirSync(server().references), []);
  await server().assertSpeaks();
});

test("a reference that is a path or an address is data, and never opened", async () => {
  const secret = join(server().dir, "clip.wav");
  writeFileSync(secret, clip(2));
  for (const audio of [secret, `file://${secret}`, "http://127.0.0.1:1/x.wav", "clip.wav"]) {
    const answer = await http().post("/v1/tts", { text: "Hello.", references: [{ audio, text: transcript }] });
    assert.ok(answer.status >= 400 && answer.status < 500, `${audio}: ${answer.status}`);
  }
  await server().assertSpeaks();
});
