// Plays a text at speaking pace. Long words take longer and punctuation makes pauses; the mean is the chosen pace.

const SENTENCE = 200; // maximum number of units to search for the end of a sentence
const LATE = 1000; // maximum milliseconds of delay to catch up on (timers of a background tab are late)

export class Player {
  state = "idle"; // idle, playing, paused, done
  #send;
  #changed;
  #units = [];
  #weights = [];
  #next = 0;
  #pace;
  #due = 0;
  #timer = null;

  /** `send(text)` sends a unit. `changed()` is called when the state or the remaining text has changed. */
  constructor({ send, changed }) {
    this.#send = send;
    this.#changed = changed;
  }

  /** Load a text. With `spaced` its units are words, otherwise characters. */
  load(text, spaced) {
    this.#stop();
    this.#units = (spaced ? text.trim().match(/\S+\s*/g) : Array.from(text.trim())) ?? [];
    this.#weights = weights(this.#units);
    this.#next = 0;
    this.#become("idle");
  }

  /** Words or characters per minute. */
  set pace(value) {
    this.#pace = value;
  }

  /** The remaining text up to the end of the sentence. */
  get upcoming() {
    const rest = this.#units.slice(this.#next, this.#next + SENTENCE).join("");
    return /^.*?[.!?。！？]+["”“’»」』)]*(?=\s|$|[^\s\d.!?])|^.*/u.exec(rest)?.[0] ?? "";
  }

  play() {
    if (this.state === "playing" || !this.#units.length) return;
    if (this.state === "done") this.#next = 0;
    if (this.#next === 0) this.#send("\n"); // end a sentence that is still open
    this.#due = performance.now();
    this.#become("playing");
    this.#speak();
  }

  pause() {
    if (this.state !== "playing") return;
    this.#stop();
    this.#become("paused");
  }

  restart() {
    this.#stop();
    this.#next = 0;
    this.state = "idle";
    this.play();
  }

  #speak() {
    this.#send(this.#units[this.#next++]);
    if (this.#next === this.#units.length) {
      this.#send("\n");
      this.#become("done");
      return;
    }
    this.#due = Math.max(this.#due, performance.now() - LATE) + (60_000 / this.#pace) * this.#weights[this.#next];
    this.#timer = setTimeout(() => this.#speak(), this.#due - performance.now());
    this.#changed();
  }

  #stop() {
    clearTimeout(this.#timer);
  }

  #become(state) {
    this.state = state;
    this.#changed();
  }
}

/** The relative duration of each unit, 1 on average: its own length and the pause after the previous unit. */
function weights(units) {
  const raw = units.map((unit, i) => 2 + unit.trim().length + pauseAfter(units[i - 1]));
  const mean = raw.reduce((sum, weight) => sum + weight, 0) / raw.length;
  return raw.map((weight) => weight / mean);
}

function pauseAfter(unit = "") {
  if (/[.!?。！？\n]["”’»」』)]*\s*$/.test(unit)) return 5;
  return /[,;:，；：、]\s*$/.test(unit) ? 2.5 : 0;
}
