// Builds the page: dist/index.html and dist/assets/NAME-HASH.EXT.   node build.mjs [--tests]
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
  entryPoints: { app: "src/app.ts", style: "src/style.css" },
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
  if (name === "app.js" || name === "style.css") put(name, contents);
  else writeFileSync(path, contents); // fonts, named by esbuild
}

put("mark.svg", readFileSync("src/mark.svg"));
const licences = ["uplot", "@fontsource/newsreader"].map(
  (name) => `${name}\n\n${readFileSync(join("node_modules", name, "LICENSE"), "utf8").trim()}\n`,
);
put("licences.txt", licences.join("\n\n----\n\n"));

const page = readFileSync("src/index.html", "utf8").replace(/\{\{([^}]+)\}\}/g, (_, name) => {
  if (!urls[name]) throw new Error(`src/index.html: nothing was built under the name ${name}`);
  return urls[name];
});
writeFileSync("dist/index.html", page);
