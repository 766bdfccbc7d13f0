// The browser's own speech recognition, where there is one. Recognisers change their mind; what was sent cannot be taken
// back. So a word is sent when two guesses in a row agree on it and on the word after it, or when it is final.

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;

export const available = Boolean(Recognition);

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
    const results = new Map(); // number of a result -> what was sent of it
    Object.assign(recogniser, { lang: code, continuous: true, interimResults: true });
    recogniser.onresult = (event) => {
      for (let i = event.resultIndex; i < event.results.length; i++) {
        if (!results.has(i)) results.set(i, new Settled(spaced));
        this.#say(results.get(i), event.results[i]);
      }
    };
    recogniser.onerror = (event) => this.#failed(event.error);
    // Recognisers stop by themselves after a silence; only the user ends the listening.
    recogniser.onend = () => {
      results.clear();
      if (this.on && this.#recogniser === recogniser) recogniser.start();
    };
    this.#recogniser = recogniser;
    recogniser.start();
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
    this.#recogniser.onresult = null;
    this.#recogniser.abort();
    this.#recogniser = null;
    this.on = false;
    this.#handlers.changed();
  }

  #say(settled, result) {
    const text = settled.take(result[0].transcript, result.isFinal);
    if (text) this.#handlers.send(text);
    if (result.isFinal) this.#handlers.send("\n"); // a pause of the speaker: recognisers give no full stops
  }

  #failed(error) {
    if (error === "no-speech" || error === "aborted") return;
    this.stop();
    const reason = error === "not-allowed" ? "the browser was not allowed to use the microphone" : error;
    this.#handlers.failed(`Speech recognition stopped: ${reason}.`);
  }
}

/** The settled beginning of one result that is still changing. */
export class Settled {
  #spaced;
  #sent = 0;
  #before = [];

  constructor(spaced) {
    this.#spaced = spaced;
  }

  /** The text that is settled now and was not before. */
  take(transcript, final) {
    const units = this.#spaced ? transcript.split(/\s+/).filter(Boolean) : Array.from(transcript.trim());
    let agreed = 0;
    while (agreed < units.length && units[agreed] === this.#before[agreed]) agreed += 1;
    const start = place(this.#sent, this.#before, units);
    const end = final ? units.length : Math.max(start, agreed - 1);
    this.#before = units;
    this.#sent = end;
    const fresh = units.slice(start, end);
    return fresh.map((unit) => (this.#spaced ? `${unit} ` : unit)).join("");
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

function bare(word) {
  return word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}
