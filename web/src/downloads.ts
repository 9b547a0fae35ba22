// The speech that the player holds, as a file.
import { make } from "./dom.ts";
import type { Player } from "./player.ts";
import type { Format } from "./speech_request.ts";
import { pcmFile, wavFile } from "./wav.ts";

export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// The formats that need no server.
export function isPlain(format: Format): format is "wav" | "pcm" {
  return format === "wav" || format === "pcm";
}

export function savePlain(player: Player, format: "wav" | "pcm"): void {
  const { samples, sampleRate } = player;
  if (format === "wav") return save(new Blob([wavFile(samples.slice(), sampleRate)], { type: "audio/wav" }), "speech.wav");
  const blob = new Blob([pcmFile(samples.slice())], { type: "application/octet-stream" });
  save(blob, `speech_s16le_${sampleRate}hz.pcm`); // nothing else says it
}
