// One speech: asked for, received, heard.
import { type Connection, isAbort } from "./connection.ts";
import { BrokenAnswer } from "./errors.ts";
import type { SpeechRequest } from "./speech_request.ts";
import { WavReader } from "./wav.ts";

// Times are milliseconds from the request to the samples in the page.
export interface Listener {
  begin(sampleRate: number, firstAudio_ms: number): void;
  piece(samples: Int16Array, time_ms: number): void;
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

// Throws BrokenAnswer when the answer ends before its end.
async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
  try {
    return (await reader.read()).value;
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new BrokenAnswer();
  }
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
  for (let bytes = await next(reader); bytes; bytes = await next(reader)) {
    const samples = wav.push(bytes);
    if (samples.length === 0) continue;
    const time_ms = performance.now() - begun;
    if (!heard) listener.begin(wav.sampleRate, time_ms);
    heard = true;
    listener.piece(samples, time_ms);
  }
  if (!heard) throw new Error("the server sent no sound");
  return performance.now() - begun;
}

// The same speech as a file of another format.
export async function speakToFile(connection: Connection, request: SpeechRequest, signal: AbortSignal): Promise<Blob> {
  const response = await asked(connection, request, signal);
  try {
    return await response.blob();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new BrokenAnswer();
  }
}
