// Puts the page together.
import { Connection, isAbort, showError } from "./connection.ts";
import { byId, make } from "./dom.ts";
import { count, milliseconds } from "./format.ts";
import { ModelChoice, samples } from "./models.ts";
import { PlayerView } from "./player_view.ts";
import { Sampling } from "./sampling.ts";
import { asCurl, type Format, type SpeechRequest } from "./speech_request.ts";
import { speak, speakToFile } from "./speaking.ts";
import { StatisticsView } from "./statistics.ts";
import { VoiceList } from "./voices.ts";
import { pcmFile, wavFile } from "./wav.ts";

const kFormats: Format[] = ["wav", "mp3", "opus", "aac", "flac", "pcm"];

const connection = new Connection();
const text = byId<HTMLTextAreaElement>("text");
const speakButton = byId<HTMLButtonElement>("speak");
const cancelButton = byId<HTMLButtonElement>("cancel");
const download = byId<HTMLButtonElement>("download");
const usedSeed = byId<HTMLButtonElement>("used-seed");
const errorBox = byId("error");
const player = new PlayerView();

let format: Format = "wav";
let busy: AbortController | null = null;
let spoken: SpeechRequest | null = null; // that the player holds
let lastSeed: number | undefined;

const sampling = new Sampling(refresh);
const models = new ModelChoice(connection, () => void follow().catch(fail));
const voices = new VoiceList(connection, () => models.model(), refresh, (error) => showError(errorBox, error));

function request(seed: number | undefined): SpeechRequest {
  const seeded = seed === undefined ? {} : { seed };
  return { model: models.model().id, input: text.value, voice: voices.voice(), response_format: format, ...seeded, ...sampling.fields() };
}

function refresh(): void {
  const characters = [...text.value].length;
  byId("text-count").textContent = `${count(characters)} character${characters === 1 ? "" : "s"}`;
  const seed = sampling.drawsSeed ? lastSeed : sampling.nextSeed();
  byId("curl").textContent = asCurl(location.origin, request(seed), connection.key !== "");
  download.textContent = `Download ${format.toUpperCase()}`;
}

function setBusy(controller: AbortController | null): void {
  busy = controller;
  speakButton.disabled = busy !== null;
  cancelButton.disabled = busy === null;
  download.disabled = busy !== null || spoken === null;
  document.body.classList.toggle("busy", busy !== null);
}

function say(status: string): void {
  byId("status").textContent = status;
}

function fail(error: unknown): void {
  showError(errorBox, error);
  say("");
}

async function speakNow(): Promise<void> {
  const seed = sampling.nextSeed();
  if (seed === undefined) return sampling.reportSeed();
  if (busy) return;
  const asked = request(seed);
  lastSeed = seed;
  spoken = null;
  for (const id of ["first-audio", "rtf", "gaps"]) byId(id).textContent = "–";
  usedSeed.textContent = String(seed);
  usedSeed.disabled = false;
  showError(errorBox, null);
  player.arm();
  setBusy(new AbortController());
  say("Waiting for the first sound");
  const listener = {
    begin: (sampleRate: number, firstAudio_ms: number) => {
      player.begin(sampleRate);
      byId("first-audio").textContent = milliseconds(firstAudio_ms);
      say("Speaking");
    },
    piece: (samples: Int16Array) => player.piece(samples),
  };
  try {
    const total_ms = await speak(connection, asked, listener, busy!.signal);
    const length_s = player.player!.length_s;
    byId("rtf").textContent = (total_ms / 1000 / length_s).toFixed(3);
    say(`${length_s.toFixed(1)} seconds of sound in ${milliseconds(total_ms)}`);
    player.finish();
    spoken = asked;
  } catch (error) {
    player.stop();
    if (isAbort(error)) say("Cancelled");
    else fail(error);
  }
  // A button that is about to be disabled would lose the keyboard's place.
  if (document.activeElement === cancelButton) {
    setBusy(null);
    speakButton.focus();
  }
  setBusy(null);
  refresh();
}

function save(blob: Blob, name = `speech.${format}`): void {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

async function downloadNow(): Promise<void> {
  const held = player.player;
  if (!spoken || !held || busy) return;
  showError(errorBox, null);
  if (format === "wav") return save(new Blob([wavFile(held.samples.slice(), held.sampleRate)], { type: "audio/wav" }));
  if (format === "pcm") {
    const blob = new Blob([pcmFile(held.samples.slice())], { type: "application/octet-stream" });
    return save(blob, `speech_s16le_${held.sampleRate}hz.pcm`); // nothing else says it
  }
  setBusy(new AbortController());
  say(`Making ${format.toUpperCase()}`);
  try {
    save(await speakToFile(connection, { ...spoken, response_format: format }, busy!.signal));
    say("");
  } catch (error) {
    if (isAbort(error)) say("Cancelled");
    else fail(error);
  }
  setBusy(null);
}

function chooseFormats(): void {
  for (const name of kFormats) {
    const input = make("input", { type: "radio", name: "format", id: `format-${name}`, value: name, checked: name === format });
    input.addEventListener("change", () => {
      format = name;
      refresh();
    });
    byId("formats").append(input, make("label", { htmlFor: input.id, textContent: name.toUpperCase() }));
  }
}

function showKeyForm(shown: boolean): void {
  byId("key-form").hidden = !shown;
  byId("key-toggle").setAttribute("aria-expanded", String(shown));
}

// Voices, controls and figures are those of the chosen model.
async function follow(): Promise<void> {
  sampling.follow(samples(models.model()));
  statistics.follow(models.several ? models.model().id : "");
  const loading = voices.load();
  refresh();
  await loading;
}

// What the page needs to know of a server that has become ready.
async function learn(): Promise<void> {
  try {
    await models.load();
    await follow();
  } catch (error) {
    fail(error);
  }
}

chooseFormats();
connection.onKeyWanted = (error) => {
  showKeyForm(true);
  // Before a key was given the open form says enough.
  showError(byId("key-error"), connection.key ? error : null);
  if (document.activeElement === document.body) byId("key").focus();
};
byId<HTMLInputElement>("key").value = connection.key;
byId("key-toggle").addEventListener("click", () => {
  const opens = byId("key-form").hasAttribute("hidden");
  showKeyForm(opens);
  if (opens) byId("key").focus();
});
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  connection.useKey(byId<HTMLInputElement>("key").value);
  showError(byId("key-error"), null);
  showKeyForm(false);
  byId("key-toggle").focus();
  statistics.poll();
});
byId("speak-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void speakNow();
});
cancelButton.addEventListener("click", () => busy?.abort());
download.addEventListener("click", () => void downloadNow());
usedSeed.addEventListener("click", () => sampling.keepSeed(Number(usedSeed.textContent)));
text.addEventListener("input", refresh);
byId("copy-curl").addEventListener("click", () => {
  const selection = getSelection();
  selection?.selectAllChildren(byId("curl"));
  // Only secure contexts have a clipboard; elsewhere the command is selected and ready to be copied.
  void navigator.clipboard?.writeText(byId("curl").textContent ?? "");
});
document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") busy?.abort();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void speakNow();
});
refresh();
const statistics = new StatisticsView(connection, () => void learn());
