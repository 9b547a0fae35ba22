// Puts the page together.
import { Connection, isAbort, showError } from "./connection.ts";
import { copyText } from "./copying.ts";
import { byId, make } from "./dom.ts";
import { isPlain, save, savePlain } from "./downloads.ts";
import { keepDraft, readDraft } from "./draft.ts";
import { BrokenAnswer, ServerError } from "./errors.ts";
import { count, milliseconds } from "./format.ts";
import { KeyForm } from "./key_form.ts";
import { ModelChoice, samples } from "./models.ts";
import { PlayerView } from "./player_view.ts";
import { expectedSound_s, Prebuffer } from "./prebuffer.ts";
import { Sampling } from "./sampling.ts";
import { asCurl, type Format, type SpeechRequest } from "./speech_request.ts";
import { speak, speakToFile } from "./speaking.ts";
import { StatisticsView } from "./statistics.ts";
import { VoiceList } from "./voices.ts";

const kFormats: Format[] = ["wav", "mp3", "opus", "aac", "flac", "pcm"];

const connection = new Connection();
const text = byId<HTMLTextAreaElement>("text");
const speakButton = byId<HTMLButtonElement>("speak");
const cancelButton = byId<HTMLButtonElement>("cancel");
const download = byId<HTMLButtonElement>("download");
const usedSeed = byId<HTMLButtonElement>("used-seed");
const errorBox = byId("error");
const player = new PlayerView();

const draft = readDraft();
if (draft.text !== undefined) text.value = draft.text;
let format = kFormats.find((name) => name === draft.format) ?? "wav";
let busy: AbortController | null = null;
let spoken: { request: SpeechRequest; whole: boolean } | null = null; // that the player holds
let lastSeed: number | undefined;
let away = false; // an error says so

const sampling = new Sampling(refresh, draft.sampling);
const models = new ModelChoice(connection, () => void follow().catch(fail), draft.model);
const voices = new VoiceList({ connection, model: () => models.model(), onChange: refresh, onError: fail }, draft.voices);

function request(seed: number | undefined): SpeechRequest {
  const seeded = seed === undefined ? {} : { seed };
  return { model: models.model().id, input: text.value, voice: voices.voice(), response_format: format, ...seeded, ...sampling.fields() };
}

// What the download would be: of a part of a speech only what is there.
function fileFormat(): Format {
  return spoken && !spoken.whole && !isPlain(format) ? "wav" : format;
}

function refresh(): void {
  const characters = [...text.value].length;
  byId("text-count").textContent = `${count(characters)} character${characters === 1 ? "" : "s"}`;
  const seed = sampling.drawsSeed ? lastSeed : sampling.nextSeed();
  byId("curl").textContent = asCurl(location.origin, request(seed), connection.key !== "");
  const blank = text.value.trim() === "";
  speakButton.disabled = busy !== null || blank;
  speakButton.title = blank ? "Write something first" : "";
  cancelButton.disabled = busy === null;
  download.disabled = busy !== null || spoken === null;
  download.textContent = `Download ${fileFormat().toUpperCase()}`;
  keepDraft({ text: text.value, format, model: models.model(), voices: voices.chosen, sampling: sampling.state });
}

function setBusy(controller: AbortController | null): void {
  // A button that is about to be disabled would lose the keyboard's place.
  const held = document.activeElement === cancelButton && controller === null;
  busy = controller;
  document.body.classList.toggle("busy", busy !== null);
  refresh();
  if (held) (speakButton.disabled ? text : speakButton).focus();
}

function say(status: string): void {
  byId("status").textContent = status;
}

function fail(error: unknown): void {
  showError(errorBox, error);
  away = error instanceof ServerError && error.status === 0;
  say("");
}

// The server answers: an error that says the opposite goes.
function found(): void {
  if (!away) return;
  away = false;
  showError(errorBox, null);
  say("The server answers again: press Speak");
}

function begin(asked: SpeechRequest): AbortSignal {
  lastSeed = asked.seed;
  spoken = null;
  for (const id of ["first-audio", "rtf", "gaps"]) byId(id).textContent = "–";
  usedSeed.textContent = String(asked.seed);
  usedSeed.disabled = false;
  showError(errorBox, null);
  away = false;
  player.arm();
  const controller = new AbortController();
  setBusy(controller);
  say("Waiting for the first sound");
  return controller.signal;
}

async function hear(asked: SpeechRequest, signal: AbortSignal): Promise<void> {
  const listener = {
    begin: (sampleRate: number, firstAudio_ms: number) => {
      byId("first-audio").textContent = milliseconds(firstAudio_ms);
      say("Buffering");
      const prebuffer = new Prebuffer(expectedSound_s(asked.input) / (asked.speed ?? 1));
      player.begin(sampleRate, prebuffer, () => busy && say("Speaking"));
    },
    piece: (samples: Int16Array, time_ms: number) => player.piece(samples, time_ms / 1000),
  };
  const total_ms = await speak(connection, asked, listener, signal);
  const length_s = player.player!.length_s;
  byId("rtf").textContent = (total_ms / 1000 / length_s).toFixed(3);
  player.finish();
  say(`${length_s.toFixed(1)} seconds of sound in ${milliseconds(total_ms)}`);
  spoken = { request: asked, whole: true };
}

// What was made until then stays.
async function endEarly(asked: SpeechRequest, error: unknown): Promise<void> {
  player.stop();
  const length_s = player.player?.length_s ?? 0;
  if (length_s > 0) spoken = { request: asked, whole: false };
  const made = `${length_s.toFixed(1)} seconds`;
  if (isAbort(error)) return say(length_s > 0 ? `Cancelled; ${made} can be played and saved` : "Cancelled");
  if (!(error instanceof BrokenAnswer)) return fail(error);
  const there = await statistics.reach();
  const why = there
    ? "The server broke off this speech; its log says why."
    : "The connection to the server broke. Check that “shoal serve” is still running.";
  const words = length_s > 0 ? `${why} What was made, ${made}, can be played and saved.` : why;
  fail(there ? new Error(words) : new ServerError(words, 0));
}

async function speakNow(): Promise<void> {
  if (busy) return;
  if (text.value.trim() === "") return text.focus();
  const seed = sampling.nextSeed();
  if (seed === undefined) return sampling.reportSeed();
  const asked = request(seed);
  const signal = begin(asked);
  try {
    await hear(asked, signal);
  } catch (error) {
    await endEarly(asked, error);
  }
  setBusy(null);
}

async function downloadNow(): Promise<void> {
  const held = player.player;
  const file = fileFormat();
  if (!spoken || !held || busy) return;
  showError(errorBox, null);
  if (isPlain(file)) return savePlain(held, file);
  const controller = new AbortController();
  setBusy(controller);
  say(`Making ${file.toUpperCase()}`);
  try {
    save(await speakToFile(connection, { ...spoken.request, response_format: file }, controller.signal), `speech.${file}`);
    say("");
  } catch (error) {
    if (isAbort(error)) say("Cancelled");
    else fail(error instanceof BrokenAnswer ? new Error("The connection broke before the file was complete. Download it once more.") : error);
  }
  setBusy(null);
}

async function copyNow(): Promise<void> {
  const said = byId("copied");
  said.textContent = (await copyText(byId("curl"))) ? "Copied" : "Selected: copy it with the keyboard";
  setTimeout(() => (said.textContent = ""), 3000);
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

// Model and voice stand where the eyes are: beside the text, or on a narrow page above the button that speaks.
function placeChoices(): void {
  const narrow = matchMedia("(max-width: 860px)");
  const place = () => {
    if (narrow.matches) byId("speak-actions").before(byId("choices"));
    else byId("settings").prepend(byId("choices"));
  };
  narrow.addEventListener("change", place);
  place();
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
placeChoices();
byId("speak-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void speakNow();
});
cancelButton.addEventListener("click", () => busy?.abort());
download.addEventListener("click", () => void downloadNow());
usedSeed.addEventListener("click", () => sampling.keepSeed(Number(usedSeed.textContent)));
text.addEventListener("input", refresh);
byId("copy-curl").addEventListener("click", () => void copyNow());
document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") busy?.abort();
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void speakNow();
});
new KeyForm(connection, () => statistics.reach());
const statistics = new StatisticsView(connection, () => void learn(), found);
sampling.follow(samples(models.model()));
refresh();
