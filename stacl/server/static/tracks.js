// The translations, one row per track. Words are only appended.

import { el, find } from "./dom.js";
import { kOf, policyName, promise } from "./languages.js";
import { anticipated, lag, meanLag } from "./sentences.js";

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const decimal = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

export class Row {
  #lane;
  #lag;
  #al;
  // An observer reads the layout after it is computed, so that no layout is forced.
  #watch = new ResizeObserver(() => this.#lane.classList.toggle("brimming", this.#lane.firstElementChild?.offsetTop < 0));
  #current = null; // {number, paragraph, wait, words} of the current sentence
  #before = null;

  constructor(element) {
    this.element = element;
    this.#lane = find(".lane", element);
    this.#lag = find(".lag-now", element);
    this.#al = find(".lag-mean", element);
    this.#watch.observe(this.#lane);
  }

  /** A row for a track with a fixed policy. */
  static fixed(policy, choose) {
    const pick = el(
      "button",
      { class: "badge", type: "button", "aria-pressed": "false", title: "Show the staircase" },
      el("span", { class: "badge-word" }, kOf(policy) === Infinity ? "full" : "wait"),
      el("b", {}, kOf(policy) === Infinity ? "∞" : String(kOf(policy))),
    );
    pick.setAttribute("aria-label", `${policyName(policy)}: show the staircase`);
    pick.addEventListener("click", choose);
    const lane = el("div", { class: "lane" });
    const figures = el("div", { class: "lag" }, el("span", { class: "lag-now" }), el("span", { class: "lag-mean" }));
    const slot = el("div", { class: "slot" }, lane);
    const row = new Row(el("li", { class: "track", "data-tone": toneOf(policy) }, pick, slot, figures));
    row.promise(policy);
    return row;
  }

  language(code) {
    this.#lane.lang = code;
  }

  /** The text of an empty row. */
  promise(policy, text = promise(policy)) {
    this.#lane.dataset.promise = text;
  }

  chosen(yes) {
    this.element.classList.toggle("chosen", yes);
    find("[aria-pressed]", this.element)?.setAttribute("aria-pressed", String(yes));
  }

  /** A source word was read: a row that still waits extends its dotted line. */
  heard(sentence, track, reach) {
    const shown = this.#sentence(sentence.number);
    if (track.words.length) return;
    shown.wait.style.width = reach === Infinity ? "100%" : `${reach}px`;
    this.#figures(sentence, track);
  }

  word(sentence, track, word) {
    const shown = this.#sentence(sentence.number);
    const span = el("span", { class: "word" }, word.text);
    shown.words.push(span);
    shown.paragraph.append(word.gap, span);
    this.#figures(sentence, track);
    if (track.done) this.done(sentence, track.done);
  }

  /** The sentence is complete. Its last words may arrive later. */
  done(sentence, done) {
    const shown = [this.#current, this.#before].find((one) => one?.number === sentence.number);
    if (shown?.words.length !== done.target.length) return;
    const mean = done.latency.AL;
    this.#al.textContent = mean == null ? "" : `AL ${decimal.format(mean)} · ${number.format(meanLag(done))} ms`;
    if (this.#current === shown) this.#lag.textContent = "";
    shown.paragraph.classList.add("said");
    for (const t of anticipated(done)) mark(shown.words[t], done, t);
  }

  clear() {
    [this.#current, this.#before].forEach((shown) => this.#drop(shown));
    this.#lane.classList.remove("brimming");
    this.#current = this.#before = null;
    this.#lag.textContent = this.#al.textContent = "";
  }

  #figures(sentence, track) {
    if (sentence.number !== this.#current.number) return;
    const { words, ms } = lag(sentence, track);
    this.#lag.textContent = `${words} ${words === 1 ? "word" : "words"} · ${number.format(ms)} ms`;
  }

  /** The element of a sentence. The previous sentence fades, older ones are removed. */
  #sentence(wanted) {
    if (this.#before?.number === wanted) return this.#before;
    if (this.#current?.number === wanted) return this.#current;
    this.#drop(this.#before);
    this.#before = this.#current;
    this.#before?.paragraph.classList.add("past");
    const wait = el("span", { class: "wait", "aria-hidden": "true" });
    const paragraph = el("p", { class: "now" }, wait);
    this.#lane.append(paragraph);
    this.#watch.observe(paragraph);
    this.#current = { number: wanted, paragraph, wait, words: [] };
    return this.#current;
  }

  #drop(shown) {
    if (!shown) return;
    this.#watch.unobserve(shown.paragraph);
    shown.paragraph.remove();
  }
}

/** The colour of a track, by its k. */
export function toneOf(policy) {
  const k = kOf(policy);
  return k === Infinity ? "full" : String(k);
}

function mark(span, done, t) {
  if (!span) return;
  const source = done.alignment[t];
  span.classList.add("anticipated");
  span.title = `Anticipated: written after ${done.delays[t]} source words; “${done.source[source - 1]}” is source word ${source}.`;
  span.append(el("span", { class: "hidden" }, " (anticipated)"));
}
