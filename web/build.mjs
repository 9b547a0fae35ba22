// Builds the page, dist/index.html and dist/assets/NAME-HASH.EXT, and the report, dist/report.html, a file that holds
// all it needs.   node build.mjs [--tests]
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { build } from "esbuild";

const target = ["chrome100", "firefox100", "safari15.4"];

if (process.argv.includes("--tests")) {
  rmSync("build-tests", { recursive: true, force: true });
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: tests.map((name) => join("test", name)),
    bundle: true,
    platform: "node",
    format: "esm",
    outdir: "build-tests",
    logLevel: "warning",
  });
  process.exit(0);
}

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist/assets", { recursive: true });

const urls = {}; // what index.html calls it -> where it lies

function put(name, bytes) {
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 8).toUpperCase();
  const stem = name.slice(0, -extname(name).length);
  const url = `/assets/${stem}-${hash}${extname(name)}`;
  writeFileSync(join("dist", url), bytes);
  urls[name] = url;
}

const made = await build({
  entryPoints: { app: "src/app.ts", recorder: "src/recorder_worklet.ts", style: "src/style.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target,
  outdir: "dist/assets",
  assetNames: "[name]-[hash]",
  loader: { ".woff2": "file" },
  legalComments: "none", // they stand in licences.txt
  write: false,
  logLevel: "warning",
});
for (const { path, contents } of made.outputFiles) {
  const name = path.split("/").pop();
  if (["app.js", "recorder.js", "style.css"].includes(name)) put(name, contents);
  else writeFileSync(path, contents); // fonts, named by esbuild
}

put("mark.svg", readFileSync("src/mark.svg"));
const licences = ["uplot", "@fontsource/newsreader"].map(
  (name) => `${name}\n\n${readFileSync(join("node_modules", name, "LICENSE"), "utf8").trim()}\n`,
);
put("licences.txt", licences.join("\n\n----\n\n"));

function fill(file, values) {
  return readFileSync(file, "utf8").replace(/\{\{([^}]+)\}\}/g, (_, name) => {
    if (!values[name]) throw new Error(`${file}: nothing was built under the name ${name}`);
    return values[name];
  });
}
writeFileSync("dist/index.html", fill("src/index.html", urls));

const report = await build({
  entryPoints: { report: "src/report/main.ts", style: "src/report/report.css" },
  bundle: true,
  minify: true,
  format: "iife",
  target,
  charset: "ascii",
  outdir: "report",
  legalComments: "none", // they stand at the end of the page
  metafile: true,
  write: false,
  logLevel: "warning",
});
const built = (name) => report.outputFiles.find(({ path }) => path.endsWith(name)).text.trim();

// The licences of the packages that esbuild took something from, equal texts once.
function licencesOf(inputs) {
  const packages = new Set();
  for (const path of inputs) {
    const found = path.match(/^.*node_modules\/((?:@[^/]+\/)?[^/]+)/);
    if (found) packages.add(found[0]);
  }
  const byText = new Map();
  for (const folder of [...packages].sort()) {
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    const words = file ? readFileSync(join(folder, file), "utf8").trim() : JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).license;
    byText.set(words, [...(byText.get(words) ?? []), folder.replace(/^.*node_modules\//, "")]);
  }
  return [...byText].map(([words, names]) => `${names.join(", ")}\n\n${words}\n`).join("\n----\n\n");
}
const inHtml = (words) => words.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);

writeFileSync("dist/report.html", fill("src/report/report.html", {
  mark: `data:image/svg+xml;base64,${readFileSync("src/mark.svg").toString("base64")}`,
  style: built("style.css"),
  script: built("report.js"),
  licences: inHtml(licencesOf(Object.keys(report.metafile.inputs))),
}));
