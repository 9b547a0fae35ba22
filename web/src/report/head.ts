// The top of the page: what ran, where, how, and what stands out.
import { make } from "../dom.ts";
import { seconds } from "./numbers.ts";
import type { Run } from "./read.ts";
import { at, entries, list, number, text } from "./read.ts";

function took(run: unknown): string {
  const length = (Date.parse(text(run, "ended_at")) - Date.parse(text(run, "began_at"))) / 1000;
  return Number.isFinite(length) ? seconds(length) : "";
}

// As a shell would read it.
function commandOf(run: unknown): string {
  const words = list(run, "command").filter((word) => typeof word === "string");
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

// "voices: alloy; texts: medium"
function listed(value: unknown, ...path: string[]): string {
  return entries(value, ...path)
    .map(([name]) => [name.replaceAll("_", " "), text(value, ...path, name)])
    .filter(([, words]) => words !== "")
    .map(([name, words]) => `${name}: ${words}`)
    .join("; ");
}

// "open loop: 1, 5 requests/s; 5 % leave". Shares are those of all levels, or of the first.
function loadOf(run: unknown): string {
  const levels = list(run, "levels");
  const first = levels[0];
  if (first === undefined) return "";
  const open = text(first, "loop") === "open";
  const loads = levels.map((level) => text(level, open ? "rate_per_s" : "concurrency")).join(", ");
  const share = (name: string, what: string) => (number(first, name) ? [`${100 * number(first, name)!} % ${what}`] : []);
  const listening = text(first, "listening") === "real-time" ? ["listened to in real time"] : [];
  return [`${open ? "open" : "closed"} loop: ${loads} ${open ? "requests/s" : "users"}`, ...share("cancel_share", "leave"), ...share("slow_share", "read slowly"), ...listening].join("; ");
}

function suiteOf(run: unknown): string {
  if (at(run, "suite") === undefined) return "";
  const count = (name: string) => text(run, "suite", name) || "?";
  const texts = entries(run, "suite", "texts").map(([name]) => name).join(", ");
  return `${text(run, "suite", "configurations")}; texts ${texts}, ${count("num_samples")} requests each; ${count("batch_size")} in a row; ${count("warmup_runs")} to warm up`;
}

type Fact = [name: string, of: (run: unknown) => string];
const kFacts: Fact[] = [
  ["command", commandOf],
  ["began", (run) => text(run, "began_at").replace("T", " ").replace("Z", " UTC")],
  ["took", took],
  ["outcome", (run) => [text(run, "outcome"), text(run, "error")].filter((each) => each !== "").join(": ")],
  ["server", (run) => [text(run, "url"), text(run, "api")].filter((each) => each !== "").join(", ")],
  ["load", loadOf],
  ["speech", (run) => listed(run, "speech")],
  ["model", (run) => (at(run, "suite") === undefined ? "" : text(run, "suite", "model") || "the built-in voice")],
  ["suite", suiteOf],
  ["objectives", (run) => text(run, "slo")],
  ["seed", (run) => text(run, "seed")],
  ["silent below", (run) => (number(run, "silence_db") === null ? "" : `${text(run, "silence_db")} dB of full scale`)],
  ["request time limit", (run) => (number(run, "timeout_s") === null ? "" : `${text(run, "timeout_s")} s`)],
  ["settings' hash", (run) => text(run, "config_hash")],
  ["measured on", (run) => ["host", "processor"].map((name) => text(run, "machine", name)).concat(number(run, "machine", "threads") === null ? [] : `${text(run, "machine", "threads")} threads`, text(run, "machine", "system"), text(run, "suite", "device")).filter((each) => each !== "").join(", ")],
  ["program", (run) => [text(run, "program"), text(run, "commit") && `commit ${text(run, "commit")}`].filter((each) => each !== "").join(", ")],
];

export function factsOf(runs: Run[]): HTMLElement {
  const rows = kFacts.flatMap(([name, of]) => {
    const values = runs.map(({ run }) => of(run));
    if (values.every((value) => value === "")) return [];
    const head = make("th", { textContent: name });
    head.setAttribute("scope", "row");
    const cells = values.map((value) => make("td", {}, name === "command" ? make("code", { textContent: value }) : value || "–"));
    return [make("tr", { className: new Set(values).size > 1 ? "differs" : "" }, head, ...cells)];
  });
  const table = make("table", { className: "facts" }, make("tbody", {}, ...rows));
  if (runs.length > 1) {
    const names = runs.map(({ name }) => Object.assign(make("th", { textContent: name }), { scope: "col" }));
    table.prepend(make("thead", {}, make("tr", {}, make("th"), ...names)));
  }
  const frame = make("div", { className: "table", tabIndex: 0 }, table);
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Settings");
  return make("section", { id: "settings" }, make("h2", { textContent: "What ran" }), frame);
}

export interface Tile {
  what: string;
  value: string;
}

export function tilesOf(tiles: Tile[]): HTMLElement {
  return make("ul", { className: "tiles" }, ...tiles.map(({ what, value }) => make("li", { className: "tile" }, make("span", { textContent: what }), make("strong", { textContent: value }))));
}

// What the load program noted about its own figures: run, level, words.
export function doubtsOf(runs: Run[]): { run: Run; level: string; words: string }[] {
  return runs.flatMap((run) =>
    run.groups.flatMap((group) => {
      const level = text(group, "name") || (text(group, "loop") === "open" ? `${text(group, "rate_per_s")} requests/s` : `${text(group, "concurrency")} at a time`);
      return list(group, "notes").flatMap((words) => (typeof words === "string" ? [{ run, level, words }] : []));
    }),
  );
}

// What a reader must know before the figures: runs that did not complete, doubts about them.
export function notesOf(runs: Run[]): HTMLElement[] {
  const of = (run: Run, words: string) => (runs.length > 1 ? `${run.name}: ${words}` : words);
  return runs.flatMap((run) => {
    const outcome = text(run.run, "outcome");
    const ended = outcome === "completed" ? [] : [outcome === "running" ? "The run did not end: it goes on, or its program was killed." : `The run ${outcome === "interrupted" ? "was interrupted" : "failed"}: ${text(run.run, "error") || "nothing says why"}.`];
    const cut = run.cutOff ? ["The last line of requests.jsonl is cut off and left out."] : [];
    const doubts = doubtsOf([run]).length;
    const doubted = doubts === 0 ? [] : [doubts === 1 ? "There is a doubt about these figures; it stands at the end." : `There are ${doubts} doubts about these figures; they stand at the end.`];
    return [...ended, ...cut, ...doubted].map((words) => make("p", { className: "note", textContent: of(run, words) }));
  });
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}

export function titleOf(runs: Run[]): string {
  if (runs.length > 1) return `${runs.length} runs side by side`;
  const [only] = runs;
  if (!only) return "No runs";
  return only.isSuite ? `Speech on ${text(only.run, "suite", "device") || "this machine"}, ${text(only.run, "machine", "processor")}` : `Load on ${hostOf(text(only.run, "url"))}`;
}
