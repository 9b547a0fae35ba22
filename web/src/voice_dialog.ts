// Adds a voice: a clip of it, a name, and the words spoken in the clip.
import { type Connection, isAbort, showError } from "./connection.ts";
import { byId } from "./dom.ts";
import { bytes } from "./format.ts";
import { RecorderView } from "./recorder_view.ts";

const kNameRule = /^[A-Za-z0-9\-_ ]{1,255}$/;

export class VoiceDialog {
  private readonly dialog = byId<HTMLDialogElement>("voice-dialog");
  private readonly error = byId("voice-error");
  private readonly name = byId<HTMLInputElement>("voice-name");
  private readonly file = byId<HTMLInputElement>("voice-file");
  private readonly save = byId<HTMLButtonElement>("voice-save");
  private readonly recorder = new RecorderView((busy) => (this.save.disabled = busy));

  // `route` of the server; `onAdded` with the name that the voice got.
  constructor(
    private readonly connection: Connection,
    private readonly route: () => string,
    private readonly onAdded: (name: string) => Promise<void>,
  ) {
    byId("voice-close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => this.recorder.close());
    byId("voice-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.add();
    });
    this.file.addEventListener("change", () => {
      const picked = this.file.files?.[0];
      if (picked && !this.name.value) this.name.value = picked.name.replace(/\.[^.]*$/, "").replace(/[^A-Za-z0-9\-_ ]+/g, "_");
    });
  }

  open(): void {
    this.dialog.showModal();
  }

  private async add(): Promise<void> {
    const clip = this.file.files?.[0];
    if (!clip) return;
    if (!kNameRule.test(this.name.value)) {
      showError(this.error, new Error("A name has letters, digits, spaces, - and _ only."));
      this.name.focus();
      return;
    }
    const name = this.name.value;
    const body = new FormData();
    body.append("id", name);
    body.append("text", byId<HTMLTextAreaElement>("voice-text").value.trim());
    body.append("audio", clip);
    showError(this.error, null);
    this.save.disabled = true;
    this.save.textContent = `Sending ${bytes(clip.size)}`;
    try {
      await this.connection.json(this.route(), { method: "POST", body });
      await this.onAdded(name);
      byId<HTMLFormElement>("voice-form").reset();
      this.recorder.forget();
      this.dialog.close();
    } catch (error) {
      if (!isAbort(error)) showError(this.error, error);
    } finally {
      this.save.disabled = false;
      this.save.textContent = "Add voice";
    }
  }
}
