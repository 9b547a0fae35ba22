// Sliders that leave a value to the server until they are moved.
import { byId, make } from "./dom.ts";
import { drawSeed, readSeed } from "./speech_request.ts";

interface SliderKind {
  field: "temperature" | "top_p" | "repetition_penalty" | "max_new_tokens" | "speed";
  label: string;
  help: string;
  low: number;
  high: number;
  step: number;
  rest: number; // where it stands until it is moved
  samples: boolean; // of models that draw their sound, or of the others
}

const kKinds: SliderKind[] = [
  { field: "temperature", label: "Temperature", help: "Higher is livelier, lower steadier", low: 0.1, high: 1.5, step: 0.01, rest: 0.8, samples: true },
  { field: "top_p", label: "Top-p", help: "The share of likely sounds to choose from", low: 0.1, high: 1, step: 0.01, rest: 0.8, samples: true },
  { field: "repetition_penalty", label: "Repetition penalty", help: "Above 1 avoids repeating sounds", low: 0.9, high: 2, step: 0.01, rest: 1.1, samples: true },
  { field: "max_new_tokens", label: "Max new tokens", help: "The most frames of sound for one utterance", low: 64, high: 4096, step: 64, rest: 1024, samples: true },
  { field: "speed", label: "Speed", help: "How fast is spoken: 2 is twice as fast", low: 0.25, high: 4, step: 0.05, rest: 1, samples: false },
];

type SamplingFields = Partial<Record<SliderKind["field"], number>>;

// What a person has set.
export interface SamplingState {
  moved: SamplingFields;
  seed: string;
  random: boolean;
}

export class Sampling {
  private readonly moved: SamplingFields;
  private readonly rows = new Map<SliderKind, HTMLElement>();
  private readonly seed = byId<HTMLInputElement>("seed");
  private readonly random = byId<HTMLInputElement>("random-seed");

  constructor(
    private readonly onChange: () => void,
    remembered: SamplingState = { moved: {}, seed: "", random: true },
  ) {
    this.moved = { ...remembered.moved };
    this.seed.value = remembered.seed;
    this.random.checked = remembered.random;
    this.seed.disabled = remembered.random;
    for (const kind of kKinds) this.rows.set(kind, this.slider(kind));
    byId("sliders").append(...this.rows.values());
    this.follow(true);
    this.random.addEventListener("change", () => {
      this.seed.disabled = this.random.checked;
      this.seed.setCustomValidity("");
      if (!this.random.checked && !this.seed.value) this.seed.value = "42";
      onChange();
    });
    this.seed.addEventListener("input", () => {
      const wrong = readSeed(this.seed.value) === undefined;
      this.seed.setCustomValidity(wrong ? "A whole number from 0 to 9007199254740991" : "");
      onChange();
    });
  }

  // Of what is seen.
  fields(): SamplingFields {
    const seen = [...this.rows].filter(([, row]) => !row.hidden).map(([kind]) => kind.field);
    return Object.fromEntries(Object.entries(this.moved).filter(([field]) => (seen as string[]).includes(field)));
  }

  // Shows the sliders of models that draw their sound, or of those that do not. What was moved stays as it is.
  follow(samples: boolean): void {
    for (const [kind, row] of this.rows) row.hidden = kind.samples !== samples;
    byId("sliders-title").textContent = samples ? "Sampling" : "Speech";
  }

  get state(): SamplingState {
    return { moved: this.moved, seed: this.seed.value, random: this.random.checked };
  }

  get drawsSeed(): boolean {
    return this.random.checked;
  }

  // Absent when what is written is no seed.
  nextSeed(): number | undefined {
    return this.random.checked ? drawSeed() : readSeed(this.seed.value);
  }

  keepSeed(seed: number): void {
    this.random.checked = false;
    this.seed.disabled = false;
    this.seed.value = String(seed);
    this.seed.setCustomValidity("");
    this.onChange();
  }

  reportSeed(): void {
    this.seed.focus();
    this.seed.reportValidity();
  }

  private slider(kind: SliderKind): HTMLElement {
    const id = `sampling-${kind.field}`;
    const input = make("input", { type: "range", id, min: `${kind.low}`, max: `${kind.high}`, step: `${kind.step}`, value: `${this.moved[kind.field] ?? kind.rest}` });
    const reset = make("button", { type: "button", className: "value", disabled: true, textContent: "default" });
    const show = () => {
      const value = this.moved[kind.field];
      const words = value === undefined ? "default" : kind.step < 1 ? value.toFixed(2) : String(value);
      reset.textContent = words;
      reset.disabled = value === undefined;
      reset.title = value === undefined ? "" : "Back to the server's default";
      reset.setAttribute("aria-label", value === undefined ? `${kind.label}: default` : `${kind.label} ${words}: back to the default`);
      input.setAttribute("aria-valuetext", words);
      const share = (Number(input.value) - kind.low) / (kind.high - kind.low);
      input.style.setProperty("--share", `${100 * share}%`);
      input.classList.toggle("untouched", value === undefined);
    };
    input.addEventListener("input", () => {
      this.moved[kind.field] = Number(input.value);
      show();
      this.onChange();
    });
    reset.addEventListener("click", () => {
      delete this.moved[kind.field];
      input.value = String(kind.rest);
      show();
      input.focus();
      this.onChange();
    });
    show();
    const label = make("label", { htmlFor: id, textContent: kind.label, title: kind.help });
    return make("div", { className: "slider" }, label, reset, input);
  }
}
