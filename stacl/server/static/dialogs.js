// The two dialogs of the page: the transcript with its downloads, and the entry of a text to play.

import { el, find } from "./dom.js";
import { policyName } from "./languages.js";
import { joined } from "./sentences.js";
import { asSrt, asText, asTraces, asVtt, download } from "./transcript.js";

const FILES = {
  txt: { type: "text/plain", make: (sentences) => asText(sentences) },
  srt: { type: "application/x-subrip", make: asSrt },
  vtt: { type: "text/vtt", make: asVtt },
  jsonl: { type: "application/jsonl", make: asTraces },
};
const SHOWN = 200; // sentences in the dialog; the files contain all

export class TranscriptDialog {
  #page;
  #dialog = find("#transcript");
  #track = find("#transcript-track");

  constructor(page) {
    this.#page = page;
    find("#transcript-open").addEventListener("click", () => this.#open());
    this.#track.addEventListener("change", () => this.#fill());
    for (const button of this.#dialog.querySelectorAll("[data-file]")) {
      button.addEventListener("click", () => this.#save(button.dataset.file));
    }
  }

  #open() {
    const chosen = this.#track.value || "0";
    const names = this.#page.policies.map((policy, i) => (i ? policyName(policy) : `yours (${policyName(policy)})`));
    this.#track.replaceChildren(...names.map((name, i) => el("option", { value: i }, name)));
    this.#track.value = chosen;
    this.#fill();
    this.#dialog.showModal();
  }

  #fill() {
    const { list } = this.#page.sentences;
    const lines = list.slice(-SHOWN).map(({ pair, source, tracks }) => {
      const said = el("p", { lang: pair.target }, joined(tracks[this.#track.value].words));
      return el("li", {}, el("p", { lang: pair.source, class: "dim" }, joined(source)), said);
    });
    find("#transcript-lines").replaceChildren(...lines);
    find("#transcript-empty").hidden = lines.length > 0;
    for (const button of this.#dialog.querySelectorAll("[data-file]")) button.disabled = !lines.length;
  }

  #save(kind) {
    const { type, make } = FILES[kind];
    const track = Number(this.#track.value);
    const moment = new Date().toISOString().slice(0, 16).replace(/[T:]/g, "-");
    download(`stacl-${moment}.${kind}`, type, make(this.#page.sentences.list, track));
  }
}

export class OwnTextDialog {
  #dialog = find("#own-text");

  /** `use(text)` receives the entered text, or null if there is none. */
  constructor(use) {
    const field = find("textarea", this.#dialog);
    this.#dialog.addEventListener("close", () => {
      use(this.#dialog.returnValue === "use" && field.value.trim() ? field.value : null);
    });
  }

  open() {
    this.#dialog.returnValue = "";
    this.#dialog.showModal();
  }
}
