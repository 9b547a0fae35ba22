// Shortens a package-lock.json by what `npm ci` does not need, to about half: one package a line.
//   cd FOLDER && npm install --package-lock-only && node PATH_TO/shorten_lock.mjs package-lock.json
import { readFileSync, writeFileSync } from "node:fs";

const path = process.argv[2];
const { packages, ...head } = JSON.parse(readFileSync(path, "utf8"));

// Optional packages of other systems are named, never fetched.
function isForeign({ optional, os = ["linux"], cpu = ["x64"], libc = ["glibc"] }) {
  return optional && !(os.includes("linux") && (cpu.includes("x64") || cpu.includes("arm64")) && libc.includes("glibc"));
}

function shortened(name, { license, engines, funding, deprecated, hasInstallScript, peer, resolved, ...kept }) {
  if (isForeign(kept)) delete kept.integrity;
  return `${JSON.stringify(name)}: ${JSON.stringify(kept)}`;
}

const lines = Object.entries(packages).map(([name, entry]) => shortened(name, entry));
const start = JSON.stringify(head).slice(0, -1);
writeFileSync(path, `${start},"packages":{\n${lines.join(",\n")}\n}}\n`);
