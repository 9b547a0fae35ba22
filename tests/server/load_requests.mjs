// What the load asks: requests that must give the same sound each time, and requests that must be refused.
import { clip } from "./sound.mjs";
import { sha256 } from "./http.mjs";

const sentences = [
  "Good morning.",
  "The train leaves at noon.",
  "Please close the door behind you, it is cold outside.",
  "She sells sea shells.",
  "It was raining when we left, and it rained all the way home.",
  "Two and two make four.",
  "Have you seen my keys? I had them a minute ago.",
  "Once upon a time there was a shoal of small silver fish.",
];
const long = "Every morning the fishermen went out before the sun was up. They took bread, cheese, and a lamp. " +
  "By noon the boats came back, low in the water, and the whole village came down to the harbour to see them.";

// What must be equal each time: all bytes; of answers with times in them, the sound alone.
const bytes = (answer) => sha256(answer.body);
const batchSound = (answer) => {
  const { success, results } = answer.json();
  if (!success) throw new Error(answer.text().slice(0, 300));
  return sha256(results.map((result) => result.audio_base64).join(" "));
};
const sseSound = (answer) => {
  const events = answer.text().split("\n\n").filter((event) => event.startsWith("data: "))
    .map((event) => JSON.parse(event.slice(6)));
  if (events.at(-1)?.type !== "speech.audio.done") throw new Error("the stream of events has no end");
  return sha256(Buffer.concat(events.filter((event) => event.audio).map((event) => Buffer.from(event.audio, "base64"))));
};

const json = (path, body, digest = bytes) => ({
  path, digest, body: Buffer.from(JSON.stringify(body)), headers: { "content-type": "application/json" },
});

// Adds the voices that good() speaks with. http: of a quiet server.
export const voices = ["ann", "bob smith"];
export async function addVoices(http) {
  for (const [i, id] of voices.entries()) {
    const added = await http.post("/v1/references/add?format=json",
      { id, text: "A low hum, and nothing else.", audio: clip(2, 16000, 110 + 60 * i).toString("base64") });
    if (added.status !== 200) throw new Error(`/v1/references/add: ${added.status} ${added.text()}`);
  }
}

// Requests with their names; encode: of MessagePack. model: as /v1/models says.
export function good(encode, model) {
  const entries = [];
  const add = (name, entry) => entries.push({ name, ...entry });
  const formats = ["wav", "pcm", "flac", "mp3", "opus", "aac"];
  for (const [i, input] of sentences.entries()) {
    const format = formats[i % formats.length];
    const voice = [undefined, ...voices][i % 3];
    add(`speech ${format} ${i}`, json("/v1/audio/speech",
      { model, input, voice: voice ?? "default", response_format: format, seed: 100 + i }));
    add(`tts wav ${i}`, json("/v1/tts", { text: input, seed: 200 + i, reference_id: voice }));
    add(`tts stream ${i}`, json("/v1/tts", { text: input, seed: 300 + i, streaming: true }));
  }
  for (const format of formats) {
    add(`long ${format}`, json("/v1/audio/speech",
      { model, input: long, voice: "default", response_format: format, seed: 400 }));
  }
  const reference = { audio: clip(1.5, 16000, 150), text: "Hm." };
  add("msgpack inline", {
    path: "/v1/tts?format=msgpack", digest: bytes,
    body: Buffer.from(encode({ text: sentences[1], seed: 500, format: "flac", references: [reference] })),
    headers: { "content-type": "application/msgpack" },
  });
  add("batch", json("/v1/tts/batch",
    { items: sentences.slice(0, 3).map((text, i) => ({ text, seed: 600 + i })) }, batchSound));
  add("events", json("/v1/audio/speech",
    { model, input: sentences[0], voice: "default", response_format: "pcm", stream_format: "sse", seed: 700 },
    sseSound));
  return entries;
}

// Requests that deserve a 4xx.
export function bad() {
  const speech = (body) => json("/v1/audio/speech", body);
  const tts = (body) => json("/v1/tts", body);
  const text = (path, body, type = "application/json") =>
    ({ path, body: Buffer.from(body), headers: { "content-type": type } });
  return [
    { name: "no body", statuses: [400], ...text("/v1/audio/speech", "") },
    { name: "broken JSON", statuses: [400, 422], ...text("/v1/tts", '{"text": "Hello') },
    { name: "unknown field", statuses: [400, 422], ...tts({ text: "Hello.", texture: 1 }) },
    { name: "unknown voice", statuses: [404, 400], ...tts({ text: "Hello.", reference_id: "nobody here" }) },
    { name: "wrong kind", statuses: [400, 422], ...tts({ text: 17 }) },
    { name: "too hot", statuses: [400, 422], ...speech({ model: "x", input: "Hello.", voice: "default", temperature: 1e308 }) },
    { name: "no text", statuses: [400, 422], ...speech({ model: "x", voice: "default" }) },
    { name: "not audio", statuses: [400, 422],
      ...tts({ text: "Hello.", references: [{ audio: Buffer.alloc(3000, 7).toString("base64"), text: "x" }] }) },
    { name: "wrong media type", statuses: [415], ...text("/v1/tts", "<tts/>", "text/xml") },
    { name: "no such route", statuses: [404], ...text("/v1/nothing", "{}") },
    { name: "msgpack bomb", statuses: [400, 422],
      ...text("/v1/tts", Buffer.from([0xdd, 0xff, 0xff, 0xff, 0xff, 1]), "application/msgpack") },
  ];
}
