// The controls of the page: language pair, example texts and their pace, keyboard, microphone, theme.

import { OwnTextDialog } from "./dialogs.js";
import { el, find } from "./dom.js";
import { examplesFor } from "./examples.js";
import { nameOf, speechCode } from "./languages.js";
import { Player } from "./player.js";
import { parameters, remember, remembered } from "./settings.js";
import { available, Speech } from "./speech.js";
import { Typing } from "./typing.js";

const OWN = "own"; // opens the dialog to enter a text
const MINE = "mine"; // the entered text; a separate option, so that OWN can be chosen again

export class Controls {
  #page;
  #player;
  #speech;
  #typing;
  #examples = [];
  #models = [];
  #chosen = 0; // the index of the text that is displayed
  #own = null; // the entered text
  #ready = false; // whether the upcoming text is displayed

  constructor(page) {
    this.#page = page;
    this.#player = new Player({ send: (text) => page.say(text), changed: () => this.#changed() });
    this.#speech = new Speech({
      send: (text) => page.say(text),
      changed: () => this.#listening(),
      failed: (text) => page.alerts.show(text),
    });
    this.#typing = new Typing(page.source.field, { send: (text) => page.say(text), spaced: () => page.spaced });
    page.source.field.addEventListener("input", () => this.#typed());
    this.#makePlayer();
    this.#makeSpeech();
    makeTheme();
    find("#model").addEventListener("change", ({ target }) => this.#direction(target.value));
  }

  /** The text that the player sends next. */
  get upcoming() {
    return this.#ready ? this.#player.upcoming : "";
  }

  /** The models to choose from. */
  offer(models) {
    this.#models = models;
    const pairs = models.map(({ source, target }) => `${source} ${target}`);
    const options = models.map(({ name, source, target }, i) => {
      const alone = pairs.filter((pair) => pair === pairs[i]).length === 1;
      const text = `${nameOf(source)} → ${nameOf(target)}`;
      return el("option", { value: name }, alone ? text : `${text} (${name})`);
    });
    find("#model").replaceChildren(...options);
  }

  /** Prepare the controls for a model's languages. */
  use(model) {
    find("#model").value = model.name;
    this.#speech.cancel();
    find("#speak").disabled = !available;
    this.#page.source.field.disabled = false;
    this.#examples = examplesFor(model.source, model.target);
    const options = this.#examples.map(({ title }, i) => el("option", { value: i }, title));
    if (!options.length) options.push(el("option", { value: "" }, "None yet"));
    find("#example").replaceChildren(...options, el("option", { value: OWN }, "Your own text…"));
    find("#pace-unit").textContent = this.#page.spaced ? "words/min" : "characters/min";
    const asked = this.#examples.findIndex(({ title }) => title === parameters.get("example"));
    this.#load(this.#examples[Math.max(0, asked)] ?? { text: "", note: "" });
    find("#example").selectedIndex = this.#chosen = Math.max(0, asked);
  }

  #direction(name) {
    remember("model", name);
    this.#page.use(this.#models.find((model) => model.name === name));
  }

  /** Display another text; null keeps the current one. */
  #choose(example) {
    const menu = find("#example");
    if (example) {
      this.#page.reset();
      this.#load(example);
      this.#chosen = menu.selectedIndex;
    }
    menu.selectedIndex = this.#chosen;
  }

  #chooseOwn(text) {
    if (text === null) return this.#choose(null);
    const menu = find("#example");
    const known = menu.querySelector(`[value=${MINE}]`);
    if (!known) menu.insertBefore(el("option", { value: MINE }, "Your own text"), menu.lastElementChild);
    menu.value = MINE;
    this.#own = { text, note: "Your own text." };
    this.#choose(this.#own);
  }

  #load({ text, note }) {
    this.#ready = Boolean(text);
    this.#player.load(text, this.#page.spaced);
    find("#note").textContent = note;
  }

  #makePlayer() {
    const own = new OwnTextDialog((text) => this.#chooseOwn(text));
    find("#play").addEventListener("click", () => this.#playOrPause());
    find("#restart").addEventListener("click", () => this.#play(() => this.#player.restart()));
    find("#example").addEventListener("change", ({ target }) => {
      if (target.value === OWN) own.open();
      else this.#choose(target.value === MINE ? this.#own : this.#examples[Number(target.value)]);
    });
    const pace = find("#pace");
    const set = () => {
      this.#player.pace = pace.valueAsNumber;
      find("#pace-text").textContent = pace.value;
    };
    pace.value = remembered("pace", "140");
    set();
    if (parameters.has("pace")) this.#player.pace = find("#pace-text").textContent = Number(parameters.get("pace"));
    pace.addEventListener("input", () => {
      set();
      remember("pace", pace.value);
    });
  }

  #playOrPause() {
    if (this.#player.state === "playing") this.#player.pause();
    else this.#play(() => this.#player.play());
  }

  #play(begin) {
    this.#ready = true;
    this.#speech.cancel();
    this.#typing.flush();
    begin();
  }

  /** The player's state has changed, or a word was played. */
  #changed() {
    const { state } = this.#player;
    document.body.dataset.player = state;
    const playing = state === "playing";
    find("#play").setAttribute("aria-label", playing ? "Pause" : "Play the text at a speaker's pace");
    find("#play").title = playing ? "Pause" : "Play";
    find("#restart").disabled = state === "idle";
    if (state === "done") this.#ready = false;
    this.#page.expect();
  }

  /** Whoever types has the word: the player pauses and its text leaves the stage. */
  #typed() {
    this.#player.pause();
    this.#ready = false;
    find("#note").textContent = this.#page.source.hint;
    this.#page.expect();
  }

  #makeSpeech() {
    const button = find("#speak");
    button.disabled = true; // until it is known what language to listen to
    button.title = available
      ? "Uses the speech recognition of your browser, which may send audio to its vendor."
      : "This browser has no speech recognition; Chrome, Edge and Safari have.";
    find("#speak-help").textContent = button.title;
    button.addEventListener("click", () => {
      if (this.#speech.on) return this.#speech.stop();
      this.#typed();
      find("#note").textContent = button.title;
      this.#speech.start(speechCode(this.#page.model.source), this.#page.spaced);
    });
  }

  #listening() {
    find("#speak").setAttribute("aria-pressed", String(this.#speech.on));
    find("#speak-text").textContent = this.#speech.on ? "Listening" : "Speak";
  }
}

function makeTheme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const present = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
  find("#theme").addEventListener("click", () => {
    root.dataset.theme = present() === "dark" ? "light" : "dark";
    remember("theme", root.dataset.theme);
  });
}
