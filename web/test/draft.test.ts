import assert from "node:assert/strict";
import { test } from "node:test";
import { readDraft } from "../src/draft.ts";

const kDraft = {
  text: "It’s \"here\"\n",
  format: "mp3",
  model: { id: "shoal", family: "s1" },
  voices: { shoal: "Quay" },
  sampling: { moved: { temperature: 0.5 }, seed: "7", random: false },
};

test("a draft is read as it was kept", () => {
  assert.deepEqual(readDraft(JSON.stringify(kDraft)), kDraft);
});

test("what is no draft is left alone", () => {
  const without = (name: string) => JSON.stringify({ ...kDraft, [name]: undefined });
  for (const odd of [null, "", "{", "null", "3", "[]", "{}", ...Object.keys(kDraft).map(without)]) {
    assert.deepEqual(readDraft(odd), {}, String(odd));
  }
});
