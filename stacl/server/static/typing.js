// An input field that sends finished words. Sent words cannot be changed, so only the unfinished word can be edited.

export class Typing {
  /** `send(text)` receives finished text. `spaced()` says whether white space ends a word. */
  constructor(field, { send, spaced }) {
    this.field = field;
    this.send = send;
    this.spaced = spaced;
    field.addEventListener("input", (event) => event.isComposing || this.#take());
    field.addEventListener("compositionend", () => this.#take());
    field.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Send the unfinished word too. */
  flush() {
    const rest = this.field.value.length;
    this.#release(rest);
    if (rest && this.spaced()) this.send(" ");
  }

  #take() {
    const text = this.field.value;
    this.#release(this.spaced() ? text.search(/\S*$/) : text.length);
  }

  #release(length) {
    const text = this.field.value;
    if (!length) return;
    // Restore the caret within the unfinished word.
    const caret = Math.max(0, this.field.selectionStart - length);
    this.field.value = text.slice(length);
    this.field.setSelectionRange(caret, caret);
    this.send(text.slice(0, length));
  }

  #key(event) {
    // While an input method composes, Enter chooses a candidate (Safari reports it as key code 229 afterwards).
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.flush();
    this.send("\n");
  }
}

/** The text that was sent but not read yet, for display until the server has read it. */
export class Pending {
  text = "";

  /** The server returns full-width digits and letters as half-width. */
  sent(text) {
    this.text += text.replace(/[＃％＆＋－-９＠-Ｚａ-ｚ]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0));
  }

  heard(word) {
    const at = this.text.indexOf(word);
    // The server normalises text. If a word is not found, clear the rest, which would otherwise stay forever.
    this.text = at < 0 ? "" : this.text.slice(at + word.length);
  }

  clear() {
    this.text = "";
  }
}
