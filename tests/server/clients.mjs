// The clients that people use, from the folder that the build installed them into: nothing is installed beside the
// source.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export const clientsDir = process.env.SHOAL_SERVER_CLIENTS ?? fail();
const require = createRequire(join(clientsDir, "package.json"));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);

function fail() {
  throw new Error("SHOAL_SERVER_CLIENTS must name the folder that tests/server/package.json was installed into");
}

export const openai = async () => {
  const module = await load("openai");
  return module.default?.OpenAI ? module.default : module;
};
export const msgpack = async () => load("@msgpack/msgpack");
export const WebSocket = async () => (await load("ws")).default;
export const openapiValidator = async () => (await load("@seriousme/openapi-schema-validator")).Validator;
