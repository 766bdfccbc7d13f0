// The source: the previous sentence, the current one with numbered words, the text that was sent but not read yet, the
// text that comes next, and the input field.

import { el, find } from "./dom.js";

export class SourceView {
  #past;
  #now;
  #pending;
  #upcoming;
  #number = -1; // of the displayed sentence
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

  /** How typing works. Without spaces nothing marks the end of a word, so every character is sent. */
  get hint() {
    return `${this.#spaced ? "A space sends a word" : "What you type is sent at once"}, Enter ends the sentence.`;
  }

  /** Show a word that the server has read. */
  heard(number, { text, gap }) {
    if (number !== this.#number) this.#turn(number);
    const word = el("span", { class: "word", "data-n": this.#words.length + 1 }, text);
    this.#words.push(word);
    this.#now.insertBefore(document.createTextNode(gap), this.#pending);
    this.#now.insertBefore(word, this.#pending);
    this.#follow(word);
  }

  /** Scroll to the newest word if the sentence is too long for the view. */
  #follow(word) {
    const beyond = word.offsetTop + 1.5 * word.offsetHeight - this.root.clientHeight;
    if (this.root.scrollHeight > this.root.clientHeight) this.root.scrollTop = Math.max(0, beyond);
  }

  /** Show the text that was sent but not read yet, and the text that comes next. Both may be empty. */
  expect(pending, upcoming) {
    const sent = pending.replace(/\s+/g, " ");
    setText(this.#pending, this.#words.length ? sent.trimEnd() : sent.trim());
    setText(this.#upcoming, (this.#words.length && this.#spaced ? " " : "") + upcoming);
    this.#upcoming.hidden = !upcoming;
  }

  /** The distance of the newest word from the left edge, or Infinity if it is not on the first line. */
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
    // Words are moved and the field is not, so that it keeps its focus and its unfinished word.
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
