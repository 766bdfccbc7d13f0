// Speech recognition of the browser, if it has any. A recogniser revises its hypotheses, but sent words cannot be changed.
// So a word is sent when two hypotheses in a row agree on it and on the next word, or when it is final.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const available = Boolean(Recognition);

const FIRST_WAIT = 250; // ms to wait after another page has taken the microphone; doubled each time
const LONGEST_WAIT = 8_000;

export class Speech {
  on = false;
  #recogniser = null;
  #handlers;

  /** Handlers: `send(text)`, `changed()` when listening begins or ends, `failed(message)`. */
  constructor(handlers) {
    this.#handlers = handlers;
  }

  start(code, spaced) {
    this.on = true;
    const recogniser = new Recognition();
    let settled = new Settled(spaced);
    let ended = 0; // number of final results
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
    // Recognisers stop after a silence. They are restarted until the user stops them.
    recogniser.onend = () => {
      this.#send(settled.rest());
      settled = new Settled(spaced);
      ended = 0;
      // Two listening pages would otherwise take the microphone from each other in an endless loop.
      wait = aborted ? Math.min(Math.max(FIRST_WAIT, 2 * wait), LONGEST_WAIT) : 0;
      aborted = false;
      if (wait) setTimeout(() => this.#listen(recogniser), wait);
      else this.#listen(recogniser);
    };
    this.#recogniser = recogniser;
    this.#listen(recogniser);
    this.#handlers.changed();
  }

  /** Stop listening. Speech so far is still recognised. */
  stop() {
    this.on = false;
    this.#recogniser?.stop();
    this.#handlers.changed();
  }

  /** Stop listening and discard what is not recognised yet, because the input comes from elsewhere now. */
  cancel() {
    if (!this.#recogniser) return;
    this.#recogniser.onresult = this.#recogniser.onend = null;
    this.#recogniser.abort();
    this.#recogniser = null;
    this.on = false;
    this.#handlers.changed();
  }

  /** Start or restart, unless listening was stopped or another recogniser is in use. */
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

/** The stable prefix of a changing hypothesis, which a recogniser may split into several results. */
export class Settled {
  #spaced;
  #before = []; // the last hypothesis
  #sent = 0; // how many of its units were sent
  #beyond = []; // units sent from an earlier, longer hypothesis, which the last one does not contain
  #midway = false; // whether something was sent since the last sentence end

  constructor(spaced) {
    this.#spaced = spaced;
  }

  /** The text that has become stable: from results that are now final and from the hypotheses that follow. A final result
   * ends the sentence, because the speaker has paused and recognisers write no full stops. */
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

  /** The text that was not stable when the recogniser ended. It will not be revised any more. */
  rest() {
    const text = this.#text(this.#before.slice(this.#sent));
    return text || this.#midway ? `${text}\n` : "";
  }

  /** How many of these units were already sent. */
  #place(units) {
    let start = place(this.#sent, this.#before, units);
    const sent = this.#before.slice(0, this.#sent);
    // A hypothesis may be shorter than what was sent, and a later one may contain the missing units again.
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

/** Map a position from one hypothesis to the next, which may split words differently ("ein und zwanzig", then "21"):
 * the position with the most matching words before and after it. */
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

/** For each prefix of `list`: the length of its longest common subsequence with `words`. */
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
