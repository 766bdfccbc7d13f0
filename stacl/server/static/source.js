// The source as it is heard: the last sentence, the present one with its numbered words, then what was sent and is not
// heard yet, then what the speaker will say next, then the field to type in.

import { el, find } from "./dom.js";

export class SourceView {
  #past;
  #now;
  #pending;
  #upcoming;
  #number = -1; // of the sentence on show
  #words = [];
  #spaced = true;

  constructor(root) {
    this.root = root;
    this.field = find("textarea", root);
    this.#past = find(".past", root);
    this.#now = find(".now", root);
    this.#pending = find(".pending", root);
    this.#upcoming = find(".upcoming", root);
    root.addEventListener("scroll", () => root.classList.toggle("brimming", root.scrollTop > 0));
    root.addEventListener("click", () => getSelection().isCollapsed && this.field.focus());
  }

  language(code, name, spaced) {
    this.#spaced = spaced;
    this.root.lang = code;
    this.field.lang = code;
    this.field.placeholder = `type ${name} here`;
    this.field.setAttribute("aria-label", `${name} text. ${this.hint}`);
  }

  /** What typing does. Without spaces nothing else could say that a word is finished, so every sign is sent. */
  get hint() {
    return `${this.#spaced ? "A space sends a word" : "What you type is sent at once"}, Enter ends the sentence.`;
  }

  /** Show a word that was heard. */
  heard(number, { text, gap }) {
    if (number !== this.#number) this.#turn(number);
    const word = el("span", { class: "word", "data-n": this.#words.length + 1 }, text);
    this.#words.push(word);
    this.#now.insertBefore(document.createTextNode(gap), this.#pending);
    this.#now.insertBefore(word, this.#pending);
    this.#follow(word);
  }

  /** Keep the newest word in view, should the sentence have more lines than there is room for. */
  #follow(word) {
    const beyond = word.offsetTop + 1.5 * word.offsetHeight - this.root.clientHeight;
    if (this.root.scrollHeight > this.root.clientHeight) this.root.scrollTop = Math.max(0, beyond);
  }

  /** What was sent but not heard yet, and what will be said next; both may be empty. */
  expect(pending, upcoming) {
    const sent = pending.replace(/\s+/g, " ");
    setText(this.#pending, this.#words.length ? sent.trimEnd() : sent.trim());
    setText(this.#upcoming, (this.#words.length && this.#spaced ? " " : "") + upcoming);
    this.#upcoming.hidden = !upcoming;
  }

  /** How far from the left edge the newest word begins, Infinity if it is no longer on the first line. */
  get reach() {
    const word = this.#words.at(-1);
    if (!word) return 0;
    return word.offsetTop > this.#words[0].offsetTop ? Infinity : word.offsetLeft - this.#words[0].offsetLeft;
  }

  clear() {
    this.#number = -1;
    this.#words = [];
    this.#past.replaceChildren();
    this.#empty();
    this.expect("", "");
  }

  #turn(number) {
    this.#number = number;
    this.#words = [];
    // Moved, not copied: the field stays where it is, and keeps its focus and its half-written word.
    this.#past.replaceChildren(...this.#empty());
  }

  #empty() {
    const moved = [];
    while (this.#now.firstChild !== this.#pending) {
      moved.push(this.#now.firstChild);
      this.#now.firstChild.remove();
    }
    return moved;
  }
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
