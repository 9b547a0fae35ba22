// Writes what `npm run build` made in BUILT as C++: page_assets.cc (server/page/page.h) and report_template.cc
// (bench/runs/report_template.h).   node embed.mjs BUILT OUT
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gzipSync } from "node:zlib";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".woff2": "font/woff2",
};

// A literal of the bytes. Octal escapes have three digits at most, so that nothing after them can join in.
function literal(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 64) {
    let line = "";
    for (const byte of bytes.subarray(at, at + 64)) {
      const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c && byte !== 0x3f;
      line += plain ? String.fromCharCode(byte) : "\\" + byte.toString(8).padStart(3, "0");
    }
    lines.push(`    "${line}"`);
  }
  return lines.length ? lines.join("\n") : '    ""';
}

function view(bytes) {
  return `std::string_view(\n${literal(bytes)},\n    ${bytes.length})`;
}

function asset(path, file) {
  const type = types[extname(file)];
  if (!type) throw new Error(`${file}: no media type is known for this name`);
  const bytes = readFileSync(file);
  const packed = gzipSync(bytes, { level: 9 });
  const gzip = packed.length < 0.9 * bytes.length ? packed : Buffer.alloc(0);
  const etag = createHash("sha256").update(bytes).digest("base64url").slice(0, 16);
  return `  {"${path}", "${type}", ${view(bytes)}, ${view(gzip)}, "${etag}"},`;
}

const [built, out] = process.argv.slice(2);
const dist = join(built, "dist");
const names = readdirSync(join(dist, "assets")).sort();
const entries = [
  asset("/", join(dist, "index.html")),
  ...names.map((name) => asset(`/assets/${name}`, join(dist, "assets", name))),
];
writeFileSync(
  join(out, "page_assets.cc"),
  `// Made by web/embed.mjs.
#include "server/page/page.h"

namespace shoal::server {
namespace {
constexpr Asset kAssets[] = {
${entries.join("\n")}
};
}  // namespace

std::span<const Asset> assets() { return kAssets; }

}  // namespace shoal::server
`,
);
writeFileSync(
  join(out, "report_template.cc"),
  `// Made by web/embed.mjs.
#include "bench/runs/report_template.h"

namespace shoal::runs {

std::string_view report_template() {
  return ${view(readFileSync(join(dist, "report.html")))};
}

}  // namespace shoal::runs
`,
);
