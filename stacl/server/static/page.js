// The main view: connects the session with the elements of the page.

import { Alerts } from "./alerts.js";
import { Connection } from "./connection.js";
import { Controls } from "./controls.js";
import { el, find, oncePerFrame } from "./dom.js";
import { ADAPTIVE, FULL_STEP, kOf, leastLag, nameOf, policyAt, policyName, promise, spaced } from "./languages.js";
import { Mirror } from "./mirror.js";
import { anticipated, delays, Sentences } from "./sentences.js";
import { models, obstacle } from "./server.js";
import { address, parameters, remember, remembered } from "./settings.js";
import { SourceView } from "./source.js";
import { described, draw } from "./staircase.js";
import { stateText } from "./states.js";
import { Row, toneOf } from "./tracks.js";
import { TranscriptDialog } from "./dialogs.js";
import { Pending } from "./typing.js";

const COMPARED = ["wait-k:1", "wait-k:3", "wait-k:5", "wait-k:9", "full"];
const SKETCH = 8; // words in the example path of an empty staircase
const UNCONNECTED = "unconnected"; // for alerts that a successful connection removes

class Page {
  alerts = new Alerts(find("#alerts"));
  source = new SourceView(find("#heard"));
  sentences = new Sentences();
  model = null;
  #mirror = new Mirror();
  #pending = new Pending();
  #slider = find("#latency");
  #adaptive = find("#adaptive");
  #rows = [];
  #chosen = 0;
  #first = 0; // the number of the first sentence that is still displayed
  #between = false; // whether words belong to a session that was left; they only go into the transcript
  #redraw = oncePerFrame(() => this.#drawStairs());

  constructor() {
    this.connection = new Connection(address("live", true), {
      state: (name, reason) => this.#state(name, reason),
      started: (message) => this.#started(message),
      message: (message) => this.#take(message),
      error: ({ message }) => this.alerts.show(message, this.connection.live ? "" : UNCONNECTED),
      unopened: () => this.#explain(),
    });
    this.#makeRows();
    this.#makeSlider();
    this.controls = new Controls(this);
    new TranscriptDialog(this);
    find("#connection").addEventListener("click", () => (this.model ? this.connection.retry() : this.connect()));
    new ResizeObserver(this.#redraw).observe(find("#stairs"));
    // The transcript exists only in this tab.
    addEventListener("beforeunload", (event) => this.sentences.list.length && event.preventDefault());
  }

  /** The policies of the tracks. The first is adjustable. */
  get policies() {
    return [this.#adaptive.checked ? ADAPTIVE : policyAt(this.#slider.valueAsNumber), ...COMPARED];
  }

  get spaced() {
    return spaced(this.model?.source ?? "de");
  }

  /** Send source text to the server. */
  say(text) {
    this.#pending.sent(text);
    this.connection.send("text", { text });
    this.expect();
  }

  /** Show the text that was sent but not read yet, and the text that comes next. */
  expect() {
    this.source.expect(this.#pending.text, this.controls.upcoming);
  }

  async connect() {
    this.#state("connecting");
    try {
      const found = await models();
      this.controls.offer(found);
      const wanted = parameters.get("model") ?? remembered("model");
      this.use(found.find(({ name }) => name === wanted) ?? found[0]);
    } catch (error) {
      this.alerts.show(error.message, UNCONNECTED);
      this.#state("refused");
    }
  }

  async #explain() {
    const found = await obstacle();
    if (found) this.alerts.show(found.message, UNCONNECTED);
    if (found?.final) this.connection.giveUp();
  }

  /** Begin a session with a model. */
  use(model) {
    this.model = model;
    // Adaptive is the default if it is the model's own policy.
    const chosen = parameters.has("k") ? "no" : remembered("adaptive", model.policy === ADAPTIVE ? "yes" : "no");
    this.#adaptive.checked = chosen === "yes";
    this.#latency();
    this.#leave();
    this.source.language(model.source, nameOf(model.source), this.spaced);
    find("#source-name").textContent = nameOf(model.source);
    find("#target-name").textContent = nameOf(model.target);
    this.#rows.forEach((row) => row.language(model.target));
    this.controls.use(model);
    this.#begin();
  }

  /** Clear the view. The current sentence ends and stays in the transcript. */
  reset() {
    // Text that was sent but not read yet would appear in the next sentence, so its session ends.
    if (this.connection.live && this.#pending.text.trim()) {
      this.#leave();
      this.#begin();
    } else {
      this.say("\n");
      this.#clear();
    }
  }

  /** Leave the session. Its remaining words only go into the transcript. */
  #leave() {
    this.#between = true;
    this.#clear();
  }

  #begin() {
    const { name } = this.model;
    this.connection.start(() => ({ model: name, policies: this.policies, segment: true, align: true }));
  }

  #clear() {
    document.body.classList.remove("begun");
    this.#first = this.sentences.list.length;
    this.#pending.clear();
    this.source.clear();
    this.#rows.forEach((row) => row.clear());
    this.#redraw();
  }

  #started(message) {
    if (this.#between) this.#first = this.sentences.list.length;
    this.#between = false;
    this.sentences.begin(message);
    this.#mirror.started(message);
  }

  #take(message) {
    const sentence = this.sentences.take(message);
    this.#mirror.message(message);
    if (this.#between || sentence?.number < this.#first) return; // it is no longer displayed
    if (message.type === "heard") this.#heard(sentence, message);
    if (message.type === "word") this.#rows[message.track].word(sentence, sentence.tracks[message.track], message);
    if (message.type === "segment") this.#rows[message.track].done(sentence, message);
    this.#redraw();
  }

  #heard(sentence, message) {
    document.body.classList.add("begun");
    this.#pending.heard(message.text);
    this.source.heard(sentence.number, message);
    this.expect();
    const reach = this.source.reach;
    this.#rows.forEach((row, i) => row.heard(sentence, sentence.tracks[i], reach));
  }

  #state(name, reason) {
    const button = find("#connection");
    button.dataset.state = name;
    find("#connection-text").textContent = find("#connection-status").textContent = stateText(name, reason);
    if (name === "live") this.alerts.over(UNCONNECTED);
    button.disabled = name === "live" || name === "connecting";
    // During a retry the result is unknown; keep the note to avoid flicker.
    if (name !== "connecting") find("#offline").hidden = name !== "waiting";
  }

  #makeRows() {
    const own = new Row(find("#own"));
    find("#own-pick").addEventListener("click", () => this.#choose(0));
    const fixed = COMPARED.map((policy, i) => Row.fixed(policy, () => this.#choose(i + 1)));
    find("#tracks").append(...fixed.map(({ element }) => element));
    this.#rows = [own, ...fixed];
    find("#shown").append(...COMPARED.map((policy, i) => this.#toggle(policy, fixed[i].element)));
    this.#choose(0);
  }

  /** A checkbox that shows or hides a track. */
  #toggle(policy, row) {
    const box = el("input", { type: "checkbox" });
    const name = `shown ${policy}`;
    box.checked = remembered(name, "yes") === "yes";
    row.hidden = !box.checked;
    box.addEventListener("change", () => {
      row.hidden = !box.checked;
      remember(name, box.checked ? "yes" : "no");
      if (this.#rows[this.#chosen].element.hidden) this.#choose(0);
      this.#redraw();
    });
    const k = kOf(policy);
    const text = k === Infinity ? "full" : String(k);
    return el("label", { class: "chip", "data-tone": toneOf(policy), title: promise(policy) }, box, text);
  }

  #choose(index) {
    this.#chosen = index;
    this.#rows.forEach((row, i) => row.chosen(i === index));
    this.#redraw();
  }

  #makeSlider() {
    const k = Number(parameters.get("k") ?? remembered("k", "4"));
    this.#slider.value = k === Infinity ? FULL_STEP : k;
    this.#latency();
    const changed = () => {
      this.#latency();
      remember("adaptive", this.#adaptive.checked ? "yes" : "no");
      this.connection.send("policy", { track: 0, policy: this.policies[0] });
    };
    this.#adaptive.addEventListener("change", changed);
    this.#slider.addEventListener("input", () => {
      this.#adaptive.checked = false;
      remember("k", this.#slider.value);
      changed();
    });
  }

  #latency() {
    const policy = this.policies[0];
    const k = kOf(policy);
    const text = policy === ADAPTIVE ? "2 to 6 words" : k === Infinity ? "the whole sentence" : `${k} ${k === 1 ? "word" : "words"}`;
    find("#latency-text").textContent = text;
    this.#slider.setAttribute("aria-valuetext", text);
    this.#rows[0].promise(policy, `Press play: this track ${promise(policy)}.`);
    this.#redraw();
  }

  #drawStairs() {
    const sentence = this.sentences.last;
    const fresh = !sentence || sentence.number < this.#first;
    const shown = fresh ? this.#sketch() : this.#path(sentence);
    draw(find("#stairs"), shown);
    const name = policyName(this.sentences.policies[this.#chosen] ?? this.policies[this.#chosen]);
    find("#stairs-name").textContent = name;
    find("#stairs-text").textContent = described(name, shown.source, shown.words);
  }

  #visible() {
    return this.#rows.map((row, i) => i).filter((i) => !this.#rows[i].element.hidden);
  }

  #path(sentence) {
    const { words, done } = sentence.tracks[this.#chosen];
    const paths = this.#visible().map((i) => {
      const track = sentence.tracks[i];
      const tone = i ? toneOf(COMPARED[i - 1]) : "own";
      return { delays: delays(track), tone, chosen: i === this.#chosen, live: !track.done };
    });
    const ahead = new Set(done ? anticipated(done) : []);
    const dots = (done?.alignment ?? []).map((source, t) => ({ t, source, anticipated: ahead.has(t) }));
    return {
      source: sentence.source.map(({ text }) => text),
      target: words.map(({ text }) => text),
      words,
      paths,
      dots: dots.filter(({ source }) => source !== null),
    };
  }

  /** The paths of the tracks for an example sentence of SKETCH words. */
  #sketch() {
    const paths = this.#visible().map((i) => {
      const k = leastLag(this.policies[i]);
      const steps = Array.from({ length: SKETCH }, (_, t) => Math.min(k + t, SKETCH));
      return { delays: steps, tone: i ? toneOf(COMPARED[i - 1]) : "own", chosen: i === this.#chosen, live: false };
    });
    return { source: [], target: [], words: [], paths, dots: [], sketch: true };
  }
}

new Page().connect();
