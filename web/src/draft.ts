// What a person has written and chosen, so that a reload of the page loses nothing.
import type { Model } from "./models.ts";
import type { SamplingState } from "./sampling.ts";
import type { Format } from "./speech_request.ts";
import { recall, remember } from "./stored.ts";

export interface Draft {
  text: string;
  format: Format;
  model: Model;
  voices: Record<string, string>; // chosen, by model
  sampling: SamplingState;
}

const kStored = "shoal-draft";

export function keepDraft(draft: Draft): void {
  remember(kStored, JSON.stringify(draft));
}

// Empty when there is none, or one that another version of the page wrote.
export function readDraft(stored: string | null = recall(kStored)): Partial<Draft> {
  let draft: Partial<Draft> | null;
  try {
    draft = JSON.parse(stored ?? "null");
  } catch {
    return {};
  }
  const whole =
    typeof draft?.text === "string" &&
    typeof draft.format === "string" &&
    typeof draft.model?.id === "string" &&
    typeof draft.voices === "object" &&
    typeof draft.sampling?.moved === "object" &&
    typeof draft.sampling.seed === "string";
  return whole ? draft! : {};
}
