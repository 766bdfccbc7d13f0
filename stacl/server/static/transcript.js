// Downloads of the session: plain text of all tracks; subtitles of one track; traces of one track for `stacl score`.

import { joined } from "./sentences.js";

const LONGEST_CUE = 84; // columns: two lines of 42; a Chinese character counts as two, in width and in reading time
const PAUSE = 2; // seconds of silence after which a new cue begins
const SECONDS_A_COLUMN = 0.05;
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uff60]/gu;

/** The source and all tracks, sentence by sentence. */
export function asText(sentences) {
  const blocks = sentences.map((sentence) => {
    const said = sentence.tracks.map((track, i) => `${track.done?.policy ?? sentence.policies[i]}: ${joined(track.words)}`);
    return [`${sentence.pair.source}: ${joined(sentence.source)}`, ...said].join("\n");
  });
  return blocks.join("\n\n") + "\n";
}

/** One line of JSON per completed sentence of a track, in the format of stacl/traces/trace.py. */
export function asTraces(sentences, track) {
  const finished = sentences.map(({ tracks }) => tracks[track]?.done).filter(Boolean);
  return finished.map((done) => JSON.stringify(trace(done)) + "\n").join("");
}

function trace({ source, target, delays, read_times, write_times, policy }) {
  return { source_length: source.length, delays, source, target, unit: "word", read_times, write_times, policy };
}

export function asSrt(sentences, track) {
  const parts = cues(sentences, track).map(
    ({ start, end, text }, i) => `${i + 1}\n${clock(start, ",")} --> ${clock(end, ",")}\n${text}\n`,
  );
  return parts.join("\n");
}

export function asVtt(sentences, track) {
  const parts = cues(sentences, track).map(
    ({ start, end, text }) => `${clock(start, ".")} --> ${clock(end, ".")}\n${escaped(text)}\n`,
  );
  return ["WEBVTT\n", ...parts].join("\n");
}

/** Cues of at most two lines, with their times. A cue whose words came at once still stays long enough to be read. */
function cues(sentences, track) {
  const found = [];
  const zero = sentences[0]?.began ?? 0;
  for (const sentence of sentences) {
    let cue = null;
    for (const { text, gap, seconds } of sentence.tracks[track]?.words ?? []) {
      const time = (sentence.began - zero) / 1000 + seconds;
      const fits = cue && width(cue.text + gap + text) <= LONGEST_CUE && time - cue.last <= PAUSE;
      if (!fits) found.push((cue = { start: time, last: time, text: "", breaks: [] }));
      // A line may break before any word except punctuation.
      if (cue.text && !/^[^\p{L}\p{N}\p{Ps}\p{Pi}]/u.test(text)) cue.breaks.push(cue.text.length);
      cue.text += cue.text ? gap + text : text;
      cue.last = time;
    }
  }
  return timed(found);
}

function timed(found) {
  const shortest = ({ text }) => Math.max(1, width(text) * SECONDS_A_COLUMN);
  found.forEach((cue, i) => {
    if (i) cue.start = Math.max(cue.start, found[i - 1].start + shortest(found[i - 1]));
  });
  return found.map((cue, i) => {
    const wanted = Math.max(cue.last + PAUSE, cue.start + shortest(cue));
    return { ...cue, end: Math.min(wanted, found[i + 1]?.start ?? Infinity), text: folded(cue) };
  });
}

/** The width in columns. A Chinese character is as wide as two letters. */
export function width(text) {
  return text.length + (text.match(WIDE)?.length ?? 0);
}

/** Two lines of about equal width, broken between words. */
function folded({ text, breaks }) {
  const whole = width(text);
  if (whole <= LONGEST_CUE / 2 || !breaks.length) return text;
  const uneven = (place) => Math.abs(2 * width(text.slice(0, place)) - whole);
  const best = breaks.reduce((a, b) => (uneven(b) < uneven(a) ? b : a));
  return `${text.slice(0, best)}\n${text.slice(best).trimStart()}`;
}

function clock(seconds, point) {
  const ms = Math.round(seconds * 1000);
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const whole = `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)}`;
  return `${whole}${point}${String(ms % 1000).padStart(3, "0")}`;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function download(name, type, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: `${type};charset=utf-8` }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
