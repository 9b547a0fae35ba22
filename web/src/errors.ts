// What went wrong, in the server's own words.

export class ServerError extends Error {
  constructor(
    message: string,
    readonly status: number, // 0: no answer at all
    readonly requestId = "",
    readonly field = "",
  ) {
    super(message);
  }
}

// The connection was lost, or the server gave up, while the sound was arriving.
export class BrokenAnswer extends Error {}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

// The routes have three forms: {error: {message, param}}, {statusCode, message, error}, {error: {message, request_id}}.
export function readError(status: number, body: string, requestId = ""): ServerError {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    parsed = null;
  }
  const inner = isObject(parsed) && isObject(parsed.error) ? parsed.error : parsed;
  if (isObject(inner) && text(inner.message)) {
    return new ServerError(text(inner.message), status, requestId || text(inner.request_id), text(inner.param));
  }
  const words = body.trim();
  const readable = words && words.length <= 300 && !words.startsWith("<");
  return new ServerError(readable ? words : `the server answered with status ${status}`, status, requestId);
}
