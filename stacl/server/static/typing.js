// A field that lets go of finished words: what was heard cannot be taken back, so only the unfinished word can be edited.

export class Typing {
  /** `send(text)` gets what is finished; `spaced()` says whether white space finishes a word. */
  constructor(field, { send, spaced }) {
    this.field = field;
    this.send = send;
    this.spaced = spaced;
    field.addEventListener("input", (event) => event.isComposing || this.#take());
    field.addEventListener("compositionend", () => this.#take());
    field.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Let go of the unfinished word too: what comes next is another. */
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
    // Set only what remains: the caret stays where it is within the unfinished word.
    const caret = Math.max(0, this.field.selectionStart - length);
    this.field.value = text.slice(length);
    this.field.setSelectionRange(caret, caret);
    this.send(text.slice(0, length));
  }

  #key(event) {
    // While an input method composes, Enter chooses a candidate (229: Safari says so after the fact).
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.flush();
    this.send("\n");
  }
}

/** What was sent and not heard yet, so that it can be shown until the server has taken it. */
export class Pending {
  text = "";

  /** Wide digits and letters come back narrow. */
  sent(text) {
    this.text += text.replace(/[＃％＆＋－-９＠-Ｚａ-ｚ]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0));
  }

  heard(word) {
    const at = this.text.indexOf(word);
    // The server cleans text a little; what cannot be found again is not worth showing for ever.
    this.text = at < 0 ? "" : this.text.slice(at + word.length);
  }

  clear() {
    this.text = "";
  }
}
