// Voices of a fleet are one: what a worker has answered about them is so for every worker, under load.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fleetTest, unbalanced } from "./fleet_harness.mjs";
import { slowness } from "./harness.mjs";
import { form, sha256 } from "./http.mjs";
import { clip } from "./sound.mjs";

const references = mkdtempSync(join(tmpdir(), "shoal_voices_"));
after(() => rmSync(references, { recursive: true, force: true }));
const kinds = [
  { text: "A low hum, and nothing else.", audio: clip(0.6, 16000, 110) },
  { text: "Somewhat higher, and with other words.", audio: clip(0.7, 16000, 190) },
];
const seconds = 8 * slowness;

const add = (http, id, { text, audio }) => {
  const { body, headers } = form({ id, text, audio: { name: "voice.wav", type: "audio/wav", data: audio } });
  return http.post("/v1/references/add?format=json", body, { headers });
};
const remove = (http, reference_id) => http.ask("DELETE", "/v1/references/delete?format=json", { body: { reference_id } });
const rename = (http, old_reference_id, new_reference_id) => http.post("/v1/references/update?format=json", { old_reference_id, new_reference_id });
const listed = async (http) => new Set((await http.get("/v1/references/list?format=json")).json().reference_ids);
const say = (http, reference_id) => http.post("/v1/tts", { text: "Yes.", seed: 1, reference_id });
const ok = async (asked) => {
  const answer = await asked;
  assert.equal(answer.status, 200, answer.text());
  return answer;
};

fleetTest("voices added, renamed, replaced and deleted through any worker are known to all when the answer comes", 2, async (fleet) => {
  const any = (n) => fleet.http[n % fleet.http.length];
  const sums = [];
  for (const [i, kind] of kinds.entries()) {
    await ok(add(any(i), `kind ${i}`, kind));
    sums.push(sha256((await ok(say(any(i), `kind ${i}`))).body));
  }
  assert.notEqual(sums[0], sums[1]);
  const all = (look) => Promise.all(fleet.http.map(look));
  const has = (id, wanted) => all(async (http, worker) => assert.equal((await listed(http)).has(id), wanted, `${id} at w${worker + 1}`));
  const speaks = (id, kind) => all(async (http, worker) => assert.equal(sha256((await ok(say(http, id))).body), sums[kind], `${id} at w${worker + 1}`));
  const isGone = (id) => all(async (http) => assert.ok([400, 404].includes((await say(http, id)).status)));
  const end = Date.now() + seconds * 1000;
  // The changing voice is there for moments only: it goes on changing until each of the speakers has heard it.
  const spoken = [0, 0, 0, 0];
  const latest = end + 60_000 * slowness;
  const changes = () => Date.now() < end || (spoken.includes(0) && Date.now() < latest);

  // Each has names of its own, which nobody else touches.
  const keeper = async (_, me) => {
    let turns = 0;
    for (; Date.now() < end; turns++) {
      const [id, other, kind] = [`mine ${me}`, `other ${me}`, turns % 2];
      await ok(add(any(me + turns), id, kinds[kind]));
      await has(id, true);
      await speaks(id, kind);
      await ok(rename(any(me + turns + 1), id, other));
      await Promise.all([has(id, false), has(other, true), isGone(id), speaks(other, kind)]);
      await ok(remove(any(turns), other));
      await Promise.all([has(other, false), isGone(other)]);
      // Another voice of the same name.
      await ok(add(any(turns + 1), other, kinds[1 - kind]));
      await speaks(other, 1 - kind);
      await ok(remove(any(me), other));
    }
    return turns;
  };
  // One name that changes its voice while the others speak with it: one voice or the other, or none.
  const changer = async () => {
    let turns = 0;
    for (; changes(); turns++) {
      await ok(add(any(turns), "changing", kinds[turns % 2]));
      await ok(remove(any(turns + 1), "changing"));
    }
    return turns;
  };
  const speaker = async (_, me) => {
    for (let turn = 0; changes(); turn++) {
      const answer = await say(any(me + turn), "changing");
      if ([400, 404].includes(answer.status)) continue;
      assert.equal(answer.status, 200, answer.text());
      assert.ok(sums.includes(sha256(answer.body)), "a clip with the words of another");
      spoken[me]++;
    }
    return spoken[me];
  };
  // Everybody wants the same name: one gets it.
  const rivals = async () => {
    let rounds = 0;
    for (; Date.now() < end; rounds++) {
      const answers = await Promise.all([0, 1, 2, 3].map((n) => add(any(n), "wanted", kinds[n % 2])));
      const winner = answers.findIndex(({ status }) => status === 200);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409]);
      await speaks("wanted", winner % 2);
      const gone = await Promise.all([0, 1, 2].map((n) => remove(any(n), "wanted")));
      assert.deepEqual(gone.map(({ status }) => status).sort(), [200, 404, 404]);
    }
    return rounds;
  };
  const counts = await Promise.all([...Array.from({ length: 3 }, keeper), changer(), ...Array.from({ length: 4 }, speaker), rivals()]);
  assert.ok(counts.every((count) => count > 0), `${counts}`);
  console.log(`# turns: ${counts.slice(0, 3)}; changes: ${counts[3]}; spoken meanwhile: ${counts.slice(4, 8)}; rounds of rivals: ${counts[8]}`);
  await all(async (http) => assert.deepEqual([...await listed(http)].filter((id) => !/^kind \d$/.test(id) && id !== "changing"), []));
}, [...unbalanced, "--references-dir", references, "--log-level", "warning"]);
