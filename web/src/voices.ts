// The voices of the server: chosen, added, deleted.
import { type Connection, isAbort, showError } from "./connection.ts";
import { byId, make } from "./dom.ts";
import { bytes } from "./format.ts";
import { type Model, samples } from "./models.ts";

const kNameRule = /^[A-Za-z0-9\-_ ]{1,255}$/;

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

export class VoiceList {
  private chosen = kOwn.id;
  private shown = ""; // the model whose voices are listed
  private readonly list = byId("voice-list");
  private readonly dialog = byId<HTMLDialogElement>("voice-dialog");
  private readonly error = byId("voice-error");

  constructor(
    private readonly connection: Connection,
    private readonly model: () => Model,
    private readonly onChange: () => void,
    private readonly onError: (error: unknown) => void,
  ) {
    byId("add-voice").addEventListener("click", () => this.dialog.showModal());
    byId("voice-close").addEventListener("click", () => this.dialog.close());
    byId("voice-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.add();
    });
    const file = byId<HTMLInputElement>("voice-file");
    file.addEventListener("change", () => {
      const name = byId<HTMLInputElement>("voice-name");
      const picked = file.files?.[0];
      if (picked && !name.value) name.value = picked.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9\-_ ]+/g, "_");
    });
    this.show([kOwn]);
  }

  voice(): string {
    return this.chosen;
  }

  async load(): Promise<void> {
    const model = this.model();
    if (model.id !== this.shown) this.show([kOwn]); // never a voice of another model
    this.shown = model.id;
    const answer = await this.connection.json("/v1/audio/voices");
    if (model !== this.model()) return; // another has been chosen meanwhile
    this.show(readVoices(answer, model.id));
    byId("add-voice").hidden = !samples(model);
    this.onChange();
  }

  private route(name: string): string {
    return `/v1/references/${name}?model=${encodeURIComponent(this.model().id)}`;
  }

  private show(voices: Voice[]): void {
    if (!voices.some((voice) => voice.id === this.chosen)) this.chosen = kOwn.id;
    this.list.replaceChildren(...voices.map((voice, at) => this.row(voice, at)));
  }

  private row(voice: Voice, at: number): HTMLElement {
    const id = `voice-${at}`;
    const radio = make("input", { type: "radio", name: "voice", id, value: voice.id, checked: voice.id === this.chosen });
    radio.addEventListener("change", () => {
      this.chosen = voice.id;
      this.onChange();
    });
    const row = make("div", { className: "voice" }, radio, make("label", { htmlFor: id, textContent: voice.name }));
    if (voice.fixed) return row;
    const remove = make("button", { type: "button", className: "quiet remove", textContent: "Delete" });
    remove.setAttribute("aria-label", `Delete voice ${voice.name}`);
    remove.addEventListener("click", () => void this.remove(voice));
    row.append(remove);
    return row;
  }

  private async add(): Promise<void> {
    const name = byId<HTMLInputElement>("voice-name");
    const text = byId<HTMLTextAreaElement>("voice-text");
    const file = byId<HTMLInputElement>("voice-file");
    const save = byId<HTMLButtonElement>("voice-save");
    const clip = file.files?.[0];
    if (!clip) return;
    if (!kNameRule.test(name.value)) {
      showError(this.error, new Error("A name has letters, digits, spaces, - and _ only."));
      name.focus();
      return;
    }
    const body = new FormData();
    body.append("id", name.value);
    body.append("text", text.value.trim());
    body.append("audio", clip);
    showError(this.error, null);
    save.disabled = true;
    save.textContent = `Sending ${bytes(clip.size)}`;
    try {
      await this.connection.json(this.route("add"), { method: "POST", body });
      this.chosen = name.value;
      await this.load();
      byId<HTMLFormElement>("voice-form").reset();
      this.dialog.close();
    } catch (error) {
      if (!isAbort(error)) showError(this.error, error);
    } finally {
      save.disabled = false;
      save.textContent = "Add voice";
    }
  }

  private async remove(voice: Voice): Promise<void> {
    const dialog = byId<HTMLDialogElement>("delete-dialog");
    byId("delete-title").textContent = `Delete “${voice.name}”?`;
    dialog.returnValue = "keep";
    dialog.showModal();
    await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
    if (dialog.returnValue !== "delete") return;
    try {
      await this.connection.json(this.route("delete"), {
        method: "DELETE",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ reference_id: voice.id }),
      });
      await this.load();
      this.list.querySelector("input")?.focus();
    } catch (error) {
      this.onError(error);
    }
  }
}
