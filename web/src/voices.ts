// The voices of the server: chosen and deleted. A list beside the text; where the page is narrow, a select above the
// button that speaks.
import type { Connection } from "./connection.ts";
import { byId, make } from "./dom.ts";
import { type Model, samples } from "./models.ts";
import { VoiceDialog } from "./voice_dialog.ts";

interface Voice {
  id: string;
  name: string;
  fixed: boolean; // comes with the model and cannot be deleted
}

const kOwn: Voice = { id: "default", name: "The model's own voice", fixed: true };

interface Listed {
  id: string;
  name?: string;
  model?: string;
  fixed?: boolean;
  alias_of?: string;
}

// Those of one model, of which a server may have several, without those that are there under another name.
function readVoices(answer: unknown, ofModel: string): Voice[] {
  const list = (answer as { voices?: Listed[] }).voices ?? [];
  return list
    .filter(({ model, alias_of }) => alias_of === undefined && (model === undefined || model === ofModel))
    .map(({ id, name, fixed }) => ({ id, name: name ?? id, fixed: fixed === true || id === kOwn.id }));
}

export interface VoiceListParts {
  connection: Connection;
  model: () => Model;
  onChange: () => void;
  onError: (error: unknown) => void;
}

export class VoiceList {
  private all: Voice[] = [];
  private shown: string; // the model whose voices are listed
  private asked = 0; // how often the server was
  private readonly list = byId("voice-list");
  private readonly select = byId<HTMLSelectElement>("voice-select");
  private readonly deleteChosen = byId<HTMLButtonElement>("delete-voice");

  // `chosen`: the voice that was chosen of each model.
  constructor(
    private readonly parts: VoiceListParts,
    readonly chosen: Record<string, string> = {},
  ) {
    const dialog = new VoiceDialog(parts.connection, () => this.route("add"), (name) => this.added(name));
    byId("add-voice").addEventListener("click", () => dialog.open());
    this.select.addEventListener("change", () => this.choose(this.select.value));
    this.deleteChosen.addEventListener("click", () => {
      const voice = this.all.find(({ id }) => id === this.voice());
      if (voice) void this.remove(voice, this.select);
    });
    this.shown = parts.model().id;
    this.show(this.expected());
  }

  voice(): string {
    return this.chosen[this.parts.model().id] ?? kOwn.id;
  }

  async load(): Promise<void> {
    const model = this.parts.model();
    if (model.id !== this.shown) this.show(this.expected()); // never a voice of another model
    this.shown = model.id;
    const asked = ++this.asked;
    const answer = await this.parts.connection.json("/v1/audio/voices");
    if (asked !== this.asked) return; // asked again meanwhile: of another model, or after a voice was added or deleted
    const voices = readVoices(answer, model.id);
    if (!voices.some(({ id }) => id === this.voice())) delete this.chosen[model.id];
    this.show(voices);
    byId("add-voice").hidden = !samples(model);
    this.parts.onChange();
  }

  // What is known before the server has said it.
  private expected(): Voice[] {
    const id = this.voice();
    return id === kOwn.id ? [kOwn] : [kOwn, { id, name: id, fixed: true }];
  }

  private route(name: string): string {
    return `/v1/references/${name}?model=${encodeURIComponent(this.parts.model().id)}`;
  }

  private choose(id: string): void {
    this.chosen[this.parts.model().id] = id;
    this.mark();
    this.parts.onChange();
  }

  private show(voices: Voice[]): void {
    this.all = voices;
    this.list.replaceChildren(...voices.map((voice, at) => this.row(voice, at)));
    this.select.replaceChildren(...voices.map(({ id, name }) => make("option", { value: id, textContent: name })));
    this.mark();
  }

  // The chosen one, in sight.
  private mark(): void {
    const id = this.voice();
    this.select.value = id;
    this.deleteChosen.hidden = this.all.find((voice) => voice.id === id)?.fixed !== false;
    for (const radio of this.list.querySelectorAll("input")) {
      radio.checked = radio.value === id;
      if (!radio.checked) continue;
      const row = radio.parentElement!;
      const [top, end] = [row.offsetTop, row.offsetTop + row.offsetHeight];
      if (top < this.list.scrollTop) this.list.scrollTop = top;
      else if (end > this.list.scrollTop + this.list.clientHeight) this.list.scrollTop = end - this.list.clientHeight;
    }
  }

  private row(voice: Voice, at: number): HTMLElement {
    const id = `voice-${at}`;
    const radio = make("input", { type: "radio", name: "voice", id, value: voice.id });
    radio.addEventListener("change", () => this.choose(voice.id));
    const row = make("div", { className: "voice" }, radio, make("label", { htmlFor: id, textContent: voice.name }));
    if (voice.fixed) return row;
    const remove = make("button", { type: "button", className: "quiet remove", textContent: "Delete" });
    remove.setAttribute("aria-label", `Delete voice ${voice.name}`);
    remove.addEventListener("click", () => void this.remove(voice));
    row.append(remove);
    return row;
  }

  private async added(name: string): Promise<void> {
    this.chosen[this.parts.model().id] = name;
    await this.load();
  }

  private async remove(voice: Voice, focused?: HTMLElement): Promise<void> {
    const dialog = byId<HTMLDialogElement>("delete-dialog");
    byId("delete-title").textContent = `Delete “${voice.name}”?`;
    dialog.returnValue = "keep";
    dialog.showModal();
    await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    if (dialog.returnValue !== "delete") return;
    try {
      await this.parts.connection.json(this.route("delete"), {
        method: "DELETE",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ reference_id: voice.id }),
      });
      await this.load();
      (focused ?? this.list.querySelector("input"))?.focus();
    } catch (error) {
      this.parts.onError(error);
    }
  }
}
