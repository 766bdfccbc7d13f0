// The source and its translations by sentence, built from the server's messages. Nothing is ever removed.

export class Sentences {
  list = [];
  policies = []; // of the tracks, as they are now
  pair = { source: "", target: "" }; // the languages
  #base = 0; // the number of the session's first sentence

  /** Begin a new session. Its sentences follow the existing ones. */
  begin(started) {
    this.#base = this.list.length;
    this.policies = [...started.policies];
    this.pair = { source: started.source, target: started.target };
  }

  /** Add a message. Returns its sentence, or null. */
  take(message) {
    if (message.type === "policy") this.policies[message.track] = message.policy;
    if (message.segment === undefined) return null;
    const sentence = this.#sentence(this.#base + message.segment);
    if (message.type === "heard") this.#heard(sentence, message);
    if (message.type === "word") sentence.tracks[message.track].words.push(message);
    if (message.type === "segment") sentence.tracks[message.track].done = message;
    return sentence;
  }

  get last() {
    return this.list.at(-1);
  }

  #sentence(number) {
    while (this.list.length <= number) {
      const tracks = this.policies.map(() => ({ words: [], done: null }));
      const { pair, policies } = this;
      this.list.push({ number: this.list.length, pair, policies: [...policies], began: null, source: [], times: [], tracks });
    }
    return this.list[number];
  }

  #heard(sentence, { text, gap }) {
    const now = performance.now();
    sentence.began ??= now;
    sentence.source.push({ text, gap });
    sentence.times.push((now - sentence.began) / 1000);
  }
}

/** The words as text. */
export function joined(words) {
  return words.map((word) => word.gap + word.text).join("");
}

/** g(1), g(2), ...: the number of source words read when each word was written. */
export function delays(track) {
  return track.words.map((word) => word.delay);
}

/**
 * The lag of the last word. In words as in Average Lagging: word t is due when the speaker has reached word t - 1. In
 * milliseconds since that word arrived. Before the first word: everything read so far.
 */
export function lag(sentence, track) {
  const said = track.words.length;
  if (!said) return { words: sentence.source.length, ms: 1000 * (sentence.times.at(-1) ?? 0) };
  const { delay, seconds } = track.words[said - 1];
  return { words: Math.max(0, delay - (said - 1)), ms: behind(seconds, said, sentence.times) };
}

/** The mean lag in milliseconds over the words that Average Lagging counts: up to the first with the whole source. */
export function meanLag({ write_times, read_times, delays }) {
  const first = delays.indexOf(read_times.length);
  const counted = first < 0 ? delays.length : first + 1;
  const sum = write_times.slice(0, counted).reduce((total, time, t) => total + behind(time, t + 1, read_times), 0);
  return counted ? sum / counted : 0;
}

/** Milliseconds since word t (from 1) was due, which is when source word t - 1 arrived. */
function behind(seconds, t, heard) {
  return Math.max(0, 1000 * (seconds - (heard[Math.min(t - 2, heard.length - 1)] ?? 0)));
}

/** Positions (from 0) of the words that were written before their source word was read. */
export function anticipated(done) {
  const found = [];
  done.alignment?.forEach((source, t) => source > done.delays[t] && found.push(t));
  return found;
}
