// One speech: asked for, received, heard.
import type { Connection } from "./connection.ts";
import type { SpeechRequest } from "./speech_request.ts";
import { WavReader } from "./wav.ts";

// `firstAudio_ms`: from the request to the first samples in the page.
export interface Listener {
  begin(sampleRate: number, firstAudio_ms: number): void;
  piece(samples: Int16Array): void;
}

const kPath = "/v1/audio/speech";

function asked(connection: Connection, request: SpeechRequest, signal: AbortSignal): Promise<Response> {
  return connection.call(kPath, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request),
    signal,
  });
}

// Always as WAV, whatever the download will be: it says its sample rate and loses nothing. Returns the milliseconds from
// the request to the last samples.
export async function speak(
  connection: Connection,
  request: SpeechRequest,
  listener: Listener,
  signal: AbortSignal,
): Promise<number> {
  const begun = performance.now();
  const response = await asked(connection, { ...request, response_format: "wav" }, signal);
  if (!response.body) throw new Error("this browser cannot read an answer as it arrives");
  const wav = new WavReader();
  const reader = response.body.getReader();
  let heard = false;
  while (true) {
    const { done, value } = await reader.read();
    if (done) break;
    const samples = wav.push(value);
    if (samples.length === 0) continue;
    if (!heard) listener.begin(wav.sampleRate, performance.now() - begun);
    heard = true;
    listener.piece(samples);
  }
  if (!heard) throw new Error("the server sent no sound");
  return performance.now() - begun;
}

// The same speech as a file of another format.
export async function speakToFile(connection: Connection, request: SpeechRequest, signal: AbortSignal): Promise<Blob> {
  return (await asked(connection, request, signal)).blob();
}
