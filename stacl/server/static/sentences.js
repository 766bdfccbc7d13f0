// What was heard and said, sentence by sentence: built from the server's messages, only ever added to.

export class Sentences {
  list = [];
  policies = []; // of the tracks, as they are now
  pair = { source: "", target: "" }; // the languages
  #base = 0; // the number of the session's first sentence

  /** A new session: its sentences follow those that are there. */
  begin(started) {
    this.#base = this.list.length;
    this.policies = [...started.policies];
    this.pair = { source: started.source, target: started.target };
  }

  /** Take a message; the sentence that it belongs to, or null. */
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

/** The words as a reader sees them. */
export function joined(words) {
  return words.map((word) => word.gap + word.text).join("");
}

/** g(1), g(2), ...: how much was heard when each word was decided. */
export function delays(track) {
  return track.words.map((word) => word.delay);
}

/**
 * How far the last word is behind: in words as Average Lagging counts (the speaker would be at word t - 1 when word t is
 * due), in milliseconds since that word was heard. Before the first word: everything heard so far.
 */
export function lag(sentence, track) {
  const said = track.words.length;
  if (!said) return { words: sentence.source.length, ms: 1000 * (sentence.times.at(-1) ?? 0) };
  const { delay, seconds } = track.words[said - 1];
  return { words: Math.max(0, delay - (said - 1)), ms: behind(seconds, said, sentence.times) };
}

/** The mean of that in milliseconds, over the words that Average Lagging counts: up to the first that knew everything. */
export function meanLag({ write_times, read_times, delays }) {
  const first = delays.indexOf(read_times.length);
  const counted = first < 0 ? delays.length : first + 1;
  const sum = write_times.slice(0, counted).reduce((total, time, t) => total + behind(time, t + 1, read_times), 0);
  return counted ? sum / counted : 0;
}

/** Milliseconds from the moment when word t (from 1) was due, which is when the speaker had said word t - 1. */
function behind(seconds, t, heard) {
  return Math.max(0, 1000 * (seconds - (heard[Math.min(t - 2, heard.length - 1)] ?? 0)));
}

/** Positions (from 0) of the words that were said before their source word was heard. */
export function anticipated(done) {
  const found = [];
  done.alignment?.forEach((source, t) => source > done.delays[t] && found.push(t));
  return found;
}
