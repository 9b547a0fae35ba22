// The models of the server: which one speaks, and what it can.
import type { Connection } from "./connection.ts";
import { byId, make } from "./dom.ts";

export interface Model {
  id: string;
  family: string; // "s1", "s2", "kokoro"; empty: the server does not say
}

export function readModels(answer: unknown): Model[] {
  const list = (answer as { data?: { id: string; family?: string; alias_of?: string }[] } | null)?.data ?? [];
  return list.filter(({ alias_of }) => alias_of === undefined).map(({ id, family }) => ({ id, family: family ?? "" }));
}

// Draws sound from a distribution, and follows recordings of a voice; a Kokoro model does neither.
export function samples(model: Model): boolean {
  return model.family !== "kokoro";
}

// Seen only where there is a choice.
export class ModelChoice {
  private all: Model[] = [];
  private chosen: Model;
  private readonly select = byId<HTMLSelectElement>("model");

  constructor(
    private readonly connection: Connection,
    onChange: () => void,
    remembered?: Model,
  ) {
    this.chosen = remembered ?? { id: "shoal", family: "" };
    this.select.addEventListener("change", () => {
      this.chosen = this.all.find(({ id }) => id === this.select.value) ?? this.chosen;
      onChange();
    });
  }

  model(): Model {
    return this.chosen;
  }

  // Whether requests for a model's own figures must name it.
  get several(): boolean {
    return this.all.length > 1;
  }

  // Keeps what is chosen, if it is still there.
  async load(): Promise<void> {
    this.all = readModels(await this.connection.json("/v1/models"));
    this.chosen = this.all.find(({ id }) => id === this.chosen.id) ?? this.all[0] ?? this.chosen;
    this.select.replaceChildren(...this.all.map(({ id }) => make("option", { value: id, textContent: id })));
    this.select.value = this.chosen.id;
    byId("model-choice").hidden = !this.several;
  }
}
