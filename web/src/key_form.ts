// The API key: asked for when the server wants one, kept until it answers.
import { type Connection, showError } from "./connection.ts";
import { byId } from "./dom.ts";

export class KeyForm {
  private readonly form = byId("key-form");
  private readonly toggle = byId("key-toggle");
  private readonly key = byId<HTMLInputElement>("key");
  private readonly error = byId("key-error");

  // `tryKey`: whether the server answers to the new key.
  constructor(
    private readonly connection: Connection,
    private readonly tryKey: () => Promise<boolean>,
  ) {
    this.key.value = connection.key;
    connection.onKeyWanted = (error) => {
      this.show(true);
      // Before a key was given the open form says enough.
      showError(this.error, connection.key ? error : null);
      if (document.activeElement === document.body) this.key.focus();
    };
    this.toggle.addEventListener("click", () => {
      const opens = this.form.hasAttribute("hidden");
      this.show(opens);
      if (opens) this.key.focus();
    });
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.use();
    });
  }

  private show(shown: boolean): void {
    this.form.hidden = !shown;
    this.toggle.setAttribute("aria-expanded", String(shown));
  }

  private async use(): Promise<void> {
    this.connection.useKey(this.key.value);
    showError(this.error, null);
    if (!(await this.tryKey())) return this.key.select();
    this.show(false);
    this.toggle.focus();
  }
}
