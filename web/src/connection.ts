// Calls to the server, with the API key if there is one.
import { readError, ServerError } from "./errors.ts";
import { recall, remember } from "./stored.ts";

const kStored = "shoal-api-key";
// The server's own words tell programs which header to send.
const kNoKey = "this server asks for an API key. Type it at the top of the page.";
const kUnknownKey =
  "the server does not know this API key. Check that all of it was copied, or ask whoever runs the server for one that is valid.";

export class Connection {
  key = recall(kStored) ?? "";
  onKeyWanted: (error: ServerError) => void = () => {};

  useKey(key: string): void {
    this.key = key.trim();
    remember(kStored, this.key || null);
  }

  // Throws ServerError for every answer that is no success, and for none; AbortError when `signal` ended it.
  async call(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.key) headers.set("Authorization", `Bearer ${this.key}`);
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers, cache: "no-store" });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new ServerError("the server does not answer. Check that “shoal serve” is still running; this page finds it again by itself.", 0);
    }
    if (response.ok) return response;
    const requestId = response.headers.get("x-request-id") ?? "";
    if (response.status === 401) {
      const error = new ServerError(this.key ? kUnknownKey : kNoKey, 401, requestId);
      this.onKeyWanted(error);
      throw error;
    }
    throw readError(response.status, await response.text(), requestId);
  }

  async json(path: string, init: RequestInit = {}): Promise<unknown> {
    const headers = new Headers(init.headers);
    headers.set("Accept", "application/json");
    return (await this.call(path, { ...init, headers })).json();
  }
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

// Shows an error where it belongs; null hides it.
export function showError(box: HTMLElement, error: unknown): void {
  box.hidden = error === null;
  if (error === null) {
    box.replaceChildren();
    return;
  }
  const message = document.createElement("p");
  message.textContent = sentence(error instanceof Error ? error.message : String(error));
  box.replaceChildren(message);
  if (!(error instanceof ServerError) || error.status === 0) return;
  const details = document.createElement("p");
  details.className = "hint";
  details.textContent = `Status ${error.status}` + (error.requestId ? `, request ${error.requestId}` : "");
  box.append(details);
}

// "max_new_tokens: ..." stays as it is: it names a field.
export function sentence(message: string): string {
  return /^[a-z]+ /.test(message) ? message[0]!.toUpperCase() + message.slice(1) : message;
}
