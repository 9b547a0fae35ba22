// Calls to the server, with the API key if there is one.
import { readError, ServerError } from "./errors.ts";

const kStored = "shoal-api-key";

export class Connection {
  key = sessionStorage.getItem(kStored) ?? "";
  onKeyWanted: (error: ServerError) => void = () => {};

  useKey(key: string): void {
    this.key = key.trim();
    if (this.key) sessionStorage.setItem(kStored, this.key);
    else sessionStorage.removeItem(kStored);
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
      throw new ServerError("the server does not answer; is it still running?", 0);
    }
    if (response.ok) return response;
    const error = readError(response.status, await response.text(), response.headers.get("x-request-id") ?? "");
    if (response.status === 401) this.onKeyWanted(error);
    throw error;
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
function sentence(message: string): string {
  return /^[a-z]+ /.test(message) ? message[0]!.toUpperCase() + message.slice(1) : message;
}
