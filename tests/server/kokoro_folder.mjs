// A Kokoro model for the tests: the tiny one of the tree, with voices made here and a dictionary, so that a few words
// need no espeak-ng.
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const set = join(dirname(fileURLToPath(import.meta.url)), "../data/kokoro/set_a");
export const kokoroRate = 24000, kokoroFrame = 600;  // Hz, samples

// Numbers between -1 and 1, the same every time.
function* noise(seed) {
  for (let x = seed >>> 0; ;) {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    yield x / 2 ** 31 - 1;
  }
}

function voice(valueAt) {
  return Buffer.from(Float32Array.from({ length: 510 * 256 }, (_, i) => valueAt(i)).buffer);
}

// What the official code says of one of its cases: {style, durations}, durations in frames with the pads'.
function golden(name) {
  const file = readFileSync(join(set, "goldens", `${name}.safetensors`));
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, 8 + length));
  const read = (key, Type) => {
    const [from, to] = header[key].data_offsets;
    return [...new Type(Uint8Array.from(file.subarray(8 + length + from, 8 + length + to)).buffer)].map(Number);
  };
  return { style: read("ref_s", Float32Array), durations: read("pred_dur", BigInt64Array) };
}

// By the voices that have their styles.
export const kokoroGoldens = { af_hello: golden("a1_hello"), af_fast: golden("a3_fast") };

const dictionary = {
  hello: "həlˈO", there: "ðˈɛɹ", the: "ði", moon: "mˈun", is: "ɪz", cold: "kˈOld", fish: "fˈɪʃ", swim: "swˈɪm",
  under: "ˈʌndəɹ", and: "ænd", now: "nˈW",
};

// A folder with the model in m/ and the dictionary in words/; `voices`: those with random styles.
export function kokoroFolder(voices) {
  const folder = mkdtempSync(join(tmpdir(), "shoal_kokoro_"));
  mkdirSync(join(folder, "m/voices"), { recursive: true });
  mkdirSync(join(folder, "words"));
  for (const name of ["config.json", "kokoro-v1_0.pth"]) symlinkSync(join(set, name), join(folder, "m", name));
  voices.forEach((name, seed) => {
    const random = noise(seed + 1);
    writeFileSync(join(folder, "m/voices", `${name}.bin`), voice(() => (random.next().value + random.next().value) * 0.3));
  });
  for (const [name, { style }] of Object.entries(kokoroGoldens)) {
    writeFileSync(join(folder, "m/voices", `${name}.bin`), voice((i) => style[i % 256]));
  }
  writeFileSync(join(folder, "words/us_gold.json"), JSON.stringify(dictionary));
  return folder;
}

// Of `shoal serve`: this model beside the built-in voice.
export const kokoroFlags = (folder) => ["--models", `kokoro=${join(folder, "m")}`, "--dictionaries-dir", join(folder, "words")];
