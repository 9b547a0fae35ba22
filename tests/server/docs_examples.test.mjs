// Runs the examples of the documents, in their order, in one folder, against a server on another port.
//
// An example is a fenced block whose first line goes on with `test`: ```sh test makes=hello.mp3
//   makes=FILE   it must leave a file of this name behind, which must be sound of the kind that its name says
//   prints=WORD  its output must contain the word
//   needs=NAME   of Python: skipped, and counted as such, where this package is not installed
// ```sh without `test` is for reading only.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { clientsDir } from "./clients.mjs";
import { environment, program, sharedServer, slowness } from "./harness.mjs";
import { kokoroFlags, kokoroFolder } from "./kokoro_folder.mjs";
import { magic } from "./sound.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const documents = ["README.md", "docs/SERVER.md", "docs/OPERATIONS.md", "docs/LIVE.md", "docs/CLIENTS.md"];
const textOf = (name) => readFileSync(join(root, name), "utf8");
const model = kokoroFolder(["af_heart", "af_bella", "af_sky"]);
// Our own connection is idle while the examples run, and nobody would see it being closed.
const env = { SHOAL_ADMIN_KEY: "change-me", SHOAL_IDLE_TIMEOUT_S: "3600" };
const server = sharedServer({ before, after }, { flags: kokoroFlags(model), env });
after(() => rmSync(model, { recursive: true, force: true }));
const kinds = {
  sh: { file: "example.sh", command: ["bash", "-euo", "pipefail", "example.sh"] },
  python: { file: "example.py", command: ["python3", "example.py"] },
  js: { file: "example.mjs", command: [process.execPath, "example.mjs"] },
};

function examplesOf(name) {
  return [...textOf(name).matchAll(/^```(\w+) test(.*)\n([\s\S]*?)^```$/gm)].map(([, language, marks, code], i) => ({
    title: `${name}, example ${i + 1} (${language})`, language, code,
    makes: [...marks.matchAll(/makes=(\S+)/g)].map((match) => match[1]),
    prints: [...marks.matchAll(/prints=(\S+)/g)].map((match) => match[1]),
    needs: marks.match(/needs=(\S+)/)?.[1],
  }));
}

// As in the documents, but for where the server is and what the program is called.
function adapted(code) {
  return code.replaceAll("127.0.0.1:8080", `127.0.0.1:${server().port}`);
}

function run({ language, code, makes, prints }) {
  const { file, command } = kinds[language];
  const folder = server().dir;
  writeFileSync(join(folder, file), adapted(code));
  if (!existsSync(join(folder, "node_modules"))) symlinkSync(join(clientsDir, "node_modules"), join(folder, "node_modules"));
  const path = `${dirname(program)}:${process.env.PATH}`;
  const done = spawnSync(command[0], command.slice(1),
    { cwd: folder, encoding: "utf8", timeout: 60_000 * slowness, env: environment({ PATH: path }) });
  const output = `${done.stdout}${done.stderr}`;
  assert.equal(done.status, 0, `${done.error ?? ""}\n${output}`);
  for (const word of prints) assert.ok(output.includes(word), `no ${word} in: ${output}`);
  for (const name of makes) {
    const bytes = readFileSync(join(folder, name));
    assert.ok(bytes.length > 1000, `${name} has ${bytes.length} bytes`);
    assert.ok(magic[name.split(".").at(-1)](bytes), `${name} is none`);
  }
}

for (const name of documents) {
  for (const example of examplesOf(name)) test(example.title, (t) => {
    const command = kinds[example.language].command[0];
    if (spawnSync(command, ["--version"]).error) return t.skip(`${command} is not installed`);
    if (example.needs && spawnSync(command, ["-c", `import ${example.needs}`]).status !== 0) {
      return t.skip(`Python's package ${example.needs} is not installed`);
    }
    run(example);
  });
}

test("SERVER.md has examples in every language", () => {
  const languages = new Set(examplesOf("docs/SERVER.md").map((example) => example.language));
  assert.deepEqual([...languages].sort(), ["js", "python", "sh"]);
});

test("every example that calls the server is run", () => {
  for (const name of documents) {
    for (const [, mark, code] of textOf(name).matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)) {
      if (/127\.0\.0\.1:8080\//.test(code)) assert.match(mark, /^\w+ test/, `${name}: not run:\n${code}`);
    }
  }
});

test("every metric that the documents name is one that the server has", async () => {
  const families = [...(await server().metrics()).families.keys()];
  const text = textOf("docs/OPERATIONS.md");
  const named = new Set(text.match(/\bshoal_[a-z_]+|\bprocess_[a-z_]+/g));
  const rareOnes = ["shoal_device_memory_bytes", "shoal_memory_bytes", "shoal_errors_total",
    ...["requests", "characters", "audio_seconds"].map((what) => `shoal_key_${what}_total`)];  // not before there is something to say
  for (const name of named) {
    const family = name.replace(/_(bucket|sum|count)$/, "");
    assert.ok(families.includes(family) || families.includes(name) || rareOnes.includes(name), `${name} is no metric`);
  }
  for (const name of families) assert.ok(named.has(name), `OPERATIONS.md says nothing of ${name}`);
});

test("every flag that the documents name is one that the program has", () => {
  const help = spawnSync(program, ["serve", "--help-all"], { encoding: "utf8", env: environment() }).stdout;
  for (const name of ["docs/SERVER.md", "docs/OPERATIONS.md"]) {
    for (const block of textOf(name).matchAll(/shoal serve[^`\n]*(?:\\\n[^`\n]*)*|`(--[a-z-]+)/g)) {
      for (const flag of block[0].match(/--[a-z][a-z-]*/g) ?? []) assert.ok(help.includes(flag), `${name}: ${flag}`);
    }
  }
});
