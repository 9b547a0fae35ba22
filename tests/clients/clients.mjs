// The packages that people use, unmodified, from the folder that the build installed them into: nothing is installed
// beside the source.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

function folder() {
  if (process.env.SHOAL_CLIENTS) return process.env.SHOAL_CLIENTS;
  throw new Error("SHOAL_CLIENTS must name the folder that tests/clients/package.json was installed into");
}

export const { load } = await import(pathToFileURL(join(folder(), "load.mjs")).href);

// Servers for these tests: one thread is enough for one listener, on a machine that does other things too.
export const oneThread = { env: { SHOAL_THREADS: "1" } };
export const onePlace = { ...oneThread, flags: ["--max-concurrency", "1"] };
export const guardedBy = (key) => ({ env: { ...oneThread.env, SHOAL_API_KEY: key } });
