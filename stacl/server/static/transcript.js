// The session as files: plain text, subtitles of one track, and traces that `stacl score` reads.

import { joined } from "./sentences.js";

const LONGEST_CUE = 84; // characters: two lines of 42
const PAUSE = 2; // seconds of silence after which a new cue begins
const SECONDS_A_CHARACTER = 0.05;

/** Source and every track, sentence by sentence. */
export function asText(sentences) {
  const blocks = sentences.map((sentence) => {
    const said = sentence.tracks.map((track, i) => `${track.done?.policy ?? sentence.policies[i]}: ${joined(track.words)}`);
    return [`${sentence.pair.source}: ${joined(sentence.source)}`, ...said].join("\n");
  });
  return blocks.join("\n\n") + "\n";
}

/** One line of JSON for each finished sentence and track, as stacl/trace.py reads them. */
export function asTraces(sentences) {
  const lines = sentences.flatMap((sentence) => sentence.tracks.map(({ done }) => done).filter(Boolean).map(trace));
  return lines.map((line) => JSON.stringify(line) + "\n").join("");
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

/** What was on the screen and when, in pieces of two lines. A piece that was said at once still gets its time. */
function cues(sentences, track) {
  const found = [];
  const zero = sentences[0]?.began ?? 0;
  for (const sentence of sentences) {
    let cue = null;
    for (const { text, gap, seconds } of sentence.tracks[track]?.words ?? []) {
      const time = (sentence.began - zero) / 1000 + seconds;
      const fits = cue && cue.text.length + gap.length + text.length <= LONGEST_CUE && time - cue.last <= PAUSE;
      if (!fits) found.push((cue = { start: time, last: time, text: "" }));
      cue.text += cue.text ? gap + text : text;
      cue.last = time;
    }
  }
  return timed(found);
}

function timed(found) {
  const shortest = ({ text }) => Math.max(1, text.length * SECONDS_A_CHARACTER);
  found.forEach((cue, i) => {
    if (i) cue.start = Math.max(cue.start, found[i - 1].start + shortest(found[i - 1]));
  });
  return found.map((cue, i) => {
    const wanted = Math.max(cue.last + PAUSE, cue.start + shortest(cue));
    return { ...cue, end: Math.min(wanted, found[i + 1]?.start ?? Infinity), text: folded(cue.text) };
  });
}

/** Two lines of about equal length, broken at a space; after any sign where there are none, but not before a mark. */
function folded(text) {
  if (text.length <= LONGEST_CUE / 2) return text;
  const middle = text.length / 2;
  const places = [...text.matchAll(text.includes(" ") ? / /g : /(?<=[\p{L}\p{P}])(?=\p{L})/gu)].map((match) => match.index);
  if (!places.length) return text;
  const best = places.reduce((a, b) => (Math.abs(b - middle) < Math.abs(a - middle) ? b : a));
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
