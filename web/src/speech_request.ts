// The body of POST /v1/audio/speech.

export type Format = "wav" | "mp3" | "opus" | "aac" | "flac" | "pcm";

export interface SpeechRequest {
  model: string;
  input: string;
  voice: string;
  response_format: Format;
  seed?: number;
  temperature?: number;
  top_p?: number;
  repetition_penalty?: number;
  max_new_tokens?: number;
  speed?: number;
}

// As a command for a shell; `key` stands for the API key, which is never shown.
export function asCurl(origin: string, request: SpeechRequest, withKey: boolean): string {
  const body = JSON.stringify(request, null, 2).replaceAll("'", "'\\''");
  const lines = [
    `curl ${origin}/v1/audio/speech`,
    ...(withKey ? [`  -H "Authorization: Bearer $SHOAL_API_KEY"`] : []),
    `  -H 'Content-Type: application/json'`,
    `  -d '${body}'`,
    `  -o speech.${request.response_format}`,
  ];
  return lines.join(" \\\n");
}

// A seed that JSON and everybody's integers can hold.
export function drawSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}

// Absent when it is not a whole number from 0 to 2^53 - 1.
export function readSeed(written: string): number | undefined {
  if (!/^\d{1,16}$/.test(written.trim())) return undefined;
  const seed = Number(written);
  return Number.isSafeInteger(seed) ? seed : undefined;
}
