// The load of fleet_faults.mjs: clients that know what each answer must be, and what became of each request.
import { setTimeout as sleep } from "node:timers/promises";
import { sha256 } from "./http.mjs";
import { StrictClient } from "./strict_client.mjs";

const texts = ["Good morning.", "The train leaves at noon.", "Two and two make four.", "It rains.", "Here we are.", "All is well today."];

// Whole and streamed answers of two families of routes, each with a seed of its own.
export function requests(count) {
  return Array.from({ length: count }, (_, seed) => {
    const text = texts[seed % texts.length];
    const streams = seed % 2 === 1;
    const [path, body] = seed % 3 === 2
      ? ["/v1/audio/speech", { model: "shoal", input: text, voice: "default", response_format: streams ? "pcm" : "wav", seed }]
      : ["/v1/tts", { text, seed, streaming: streams }];
    return { path, body: JSON.stringify(body), seed };
  });
}

export class Load {
  constructor(port, known, patience_ms) {
    Object.assign(this, { port, known, patience_ms });
    this.outcomes = [];  // {what, began_ms, ended_ms, why}
    this.strays = 0;
    this.isOver = false;
  }

  // `clients` speak until over() is called.
  begin(clients) {
    this.speaking = Array.from({ length: clients }, (_, index) => this.#client(index));
  }
  async over() {
    this.isOver = true;
    await Promise.all(this.speaking);
  }

  async #client(index) {
    const client = new StrictClient(this.port);
    for (let turn = 0; !this.isOver; ++turn) {
      const entry = this.known[(index * 7 + turn) % this.known.length];
      const id = `faults-${index}-${turn}`;
      const began_ms = performance.now();
      const answer = await client.post(entry.path, { "x-request-id": id }, entry.body, this.patience_ms);
      const outcome = judged(answer, entry, id);
      this.outcomes.push({ ...outcome, began_ms, ended_ms: performance.now() });
      if (outcome.what !== "right") await sleep(100);
    }
    await sleep(50);  // a second answer would come now
    client.close();
    this.strays += client.strays;
  }
}

// right: whole, and what a calm worker says. broken: it had begun, and the client sees that it is not whole. Everything
// else is what a fleet promises not to do.
function judged(answer, entry, id) {
  if (!answer.hasBegun) return { what: "unanswered", why: answer.error };
  if (answer.headers["x-request-id"] !== undefined && answer.headers["x-request-id"] !== id) return { what: "mixed_up", why: `the answer to ${answer.headers["x-request-id"]}` };
  if (!answer.isWhole && answer.status === 200 && answer.error === "the connection has ended") return { what: "broken", why: `after ${answer.body.length} bytes` };
  if (!answer.isWhole) return { what: "malformed", why: answer.error };
  if (answer.status !== 200) return { what: "refused", why: `${answer.status} ${answer.body.toString("utf8", 0, 200)}` };
  if (sha256(answer.body) !== entry.sum) return { what: "wrong", why: `seed ${entry.seed}: ${answer.body.length} bytes` };
  return { what: "right" };
}
