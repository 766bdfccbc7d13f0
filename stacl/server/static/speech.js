// The browser's own speech recognition, where there is one. Recognisers change their mind; what was sent cannot be taken
// back. So a word is sent when two guesses in a row agree on it and on the word after it, or when it is final.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const available = Boolean(Recognition);

const FIRST_WAIT = 250; // ms after another page has taken the microphone; longer each time it does so again
const LONGEST_WAIT = 8_000;

export class Speech {
  on = false;
  #recogniser = null;
  #handlers;

  /** `send(text)`, `changed()` when listening begins or ends, `failed(sentence)`. */
  constructor(handlers) {
    this.#handlers = handlers;
  }

  start(code, spaced) {
    this.on = true;
    const recogniser = new Recognition();
    let settled = new Settled(spaced);
    let ended = 0; // results that are final
    let aborted = false;
    let wait = 0;
    Object.assign(recogniser, { lang: code, continuous: true, interimResults: true });
    recogniser.onresult = ({ results }) => {
      const transcripts = Array.from(results, (result) => result[0].transcript);
      const before = ended;
      while (results[ended]?.isFinal) ended += 1;
      this.#send(settled.take(transcripts.slice(before, ended), transcripts.slice(ended)));
    };
    recogniser.onerror = ({ error }) => {
      aborted = error === "aborted";
      this.#failed(error);
    };
    // Recognisers stop by themselves after a silence; only the user ends the listening.
    recogniser.onend = () => {
      this.#send(settled.rest());
      settled = new Settled(spaced);
      ended = 0;
      // Two pages that listen take the microphone from each other, at once and for ever if neither waited.
      wait = aborted ? Math.min(Math.max(FIRST_WAIT, 2 * wait), LONGEST_WAIT) : 0;
      aborted = false;
      if (wait) setTimeout(() => this.#listen(recogniser), wait);
      else this.#listen(recogniser);
    };
    this.#recogniser = recogniser;
    this.#listen(recogniser);
    this.#handlers.changed();
  }

  /** Listen no longer; what was said before is still recognised to its end. */
  stop() {
    this.on = false;
    this.#recogniser?.stop();
    this.#handlers.changed();
  }

  /** Listen no longer, and forget what is not recognised yet: something else has the word. */
  cancel() {
    if (!this.#recogniser) return;
    this.#recogniser.onresult = this.#recogniser.onend = null;
    this.#recogniser.abort();
    this.#recogniser = null;
    this.on = false;
    this.#handlers.changed();
  }

  /** Begin, or go on, unless the user or another recogniser has ended it meanwhile. */
  #listen(recogniser) {
    if (this.on && this.#recogniser === recogniser) recogniser.start();
  }

  #send(text) {
    if (text) this.#handlers.send(text);
  }

  #failed(error) {
    if (error === "no-speech" || error === "aborted") return;
    this.stop();
    const reason = error === "not-allowed" ? "the browser was not allowed to use the microphone" : error;
    this.#handlers.failed(`Speech recognition stopped: ${reason}.`);
  }
}

/** The settled beginning of what is still changing: one guess, into however many results a recogniser cuts it. */
export class Settled {
  #spaced;
  #before = []; // the last guess
  #sent = 0; // how much of it
  #beyond = []; // what was sent, too, and was in an earlier guess behind the end of this one
  #midway = false; // something was sent since the last sentence ended

  constructor(spaced) {
    this.#spaced = spaced;
  }

  /** The text that is settled now and was not before: of the results that have become final, and of the guesses at what
   * follows. A final one ends the sentence, for the speaker has paused: recognisers give no full stops. */
  take(finals, guesses) {
    const results = finals.map((result) => this.#units(result));
    const open = this.#units(guesses.join(this.#spaced ? " " : ""));
    const units = [...results.flat(), ...open];
    const ended = units.length - open.length;
    const start = this.#place(units);
    const end = Math.max(start, ended, this.#agreed(units) - 1);
    let text = "";
    let from = 0;
    for (const result of results) {
      text += `${this.#text(units.slice(Math.max(start, from), from + result.length))}\n`;
      from += result.length;
    }
    if (end > start) this.#beyond = [];
    this.#before = open;
    this.#sent = end - ended;
    text += this.#text(units.slice(Math.max(start, ended), end));
    if (text) this.#midway = !text.endsWith("\n");
    return text;
  }

  /** What was not settled when the recogniser ended: it will not come back to it. */
  rest() {
    const text = this.#text(this.#before.slice(this.#sent));
    return text || this.#midway ? `${text}\n` : "";
  }

  /** How many of these units were sent before. */
  #place(units) {
    let start = place(this.#sent, this.#before, units);
    const sent = this.#before.slice(0, this.#sent);
    // A guess may end before what was sent of the last one, and a later one go on with it.
    const lost = sent.slice(place(units.length, units, sent));
    let again = 0;
    while (again < this.#beyond.length && start < units.length && same(units[start], this.#beyond[again])) {
      start += 1;
      again += 1;
    }
    this.#beyond = [...lost, ...this.#beyond.slice(again)];
    return start;
  }

  #agreed(units) {
    let agreed = 0;
    while (agreed < units.length && units[agreed] === this.#before[agreed]) agreed += 1;
    return agreed;
  }

  #units(transcript) {
    return this.#spaced ? transcript.split(/\s+/).filter(Boolean) : Array.from(transcript.trim());
  }

  #text(units) {
    return units.map((unit) => (this.#spaced ? `${unit} ` : unit)).join("");
  }
}

/** Where a place in one guess is in the next, which may have cut words otherwise ("ein und zwanzig", then "21"): where
 * the most words before it and behind it are the same. */
function place(cut, before, units) {
  const [old, now] = [before, units].map((list) => list.map(bare));
  const left = shared(old.slice(0, cut), now);
  const right = shared(old.slice(cut).reverse(), now.reverse()).reverse();
  let best = Math.min(cut, units.length);
  for (let at = 0; at <= units.length; at++) {
    const gain = left[at] + right[at] - left[best] - right[best];
    if (gain > 0 || (gain === 0 && Math.abs(at - cut) < Math.abs(best - cut))) best = at;
  }
  return best;
}

/** For each beginning of `list`, how many words it shares with `words` in the same order. */
function shared(words, list) {
  let row = new Array(list.length + 1).fill(0);
  for (const word of words) {
    const next = [0];
    list.forEach((other, i) => next.push(word === other ? row[i] + 1 : Math.max(row[i + 1], next[i])));
    row = next;
  }
  return row;
}

function same(word, other) {
  return bare(word) === bare(other);
}

function bare(word) {
  return word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}
