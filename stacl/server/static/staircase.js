// The read/write staircase: source words to the right, target words down. A step to the right reads a word, a step down
// writes one. Everything left of the path was known. A dot to the right of it is an anticipated word.

import { svg } from "./dom.js";
import { width } from "./transcript.js";

const STEP = 4; // the grid grows in steps of this many cells, so that its scale does not change with every word
const LEAST = 8;
const LARGEST = 64; // pixels of a cell
const READABLE = 8; // pixels of the smallest label that is drawn
const GAP = 10; // pixels between a label and the grid
const SLOPE = 52; // degrees of the labels above the grid
const COLUMNS_AN_EM = 1.5; // letters that always fit; most are narrower

/**
 * Draw into `root`, an <svg>:
 *   source   the source words
 *   target   the target words of the chosen track
 *   paths    [{delays, tone, chosen, live}], live: the sentence is not complete
 *   dots     [{t, source, anticipated}], positions from 0 and from 1
 */
export function draw(root, { source, target, paths, dots, sketch }) {
  const columns = room(source.length);
  const rows = room(Math.max(...paths.map(({ delays }) => delays.length), 0));
  const grid = geometry(root, columns, rows, sketch);
  root.replaceChildren(
    cells(grid),
    known(grid, paths.find(({ chosen }) => chosen)?.delays ?? []),
    ...paths.filter(({ chosen }) => !chosen).map((path) => stairs(grid, path, source.length, sketch)),
    ...paths.filter(({ chosen }) => chosen).map((path) => stairs(grid, path, source.length, sketch)),
    ...dots.map((dot) => point(grid, dot)),
    labels(grid, source, target, dots),
  );
}

function room(length) {
  return Math.max(LEAST, Math.ceil(length / STEP) * STEP);
}

function geometry(root, columns, rows, sketch) {
  const { width, height } = root.getBoundingClientRect();
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const fitted = (left, top, right) => {
    const cell = Math.max(1, Math.min((width - left - right) / columns, (height - top - 10) / rows, LARGEST));
    const font = Math.min(16, cell * 0.72);
    return { columns, rows, cell, left, top, font, x: (n) => left + n * cell, y: (n) => top + n * cell };
  };
  const labelled = fitted(Math.min(120, width * 0.26), Math.min(96, height * 0.22), 40);
  return sketch || labelled.font < READABLE ? fitted(10, 10, 10) : labelled;
}

function cells({ columns, rows, x, y }) {
  const lines = [];
  for (let i = 0; i <= columns; i++) lines.push(`M${x(i)} ${y(0)}V${y(rows)}`);
  for (let j = 0; j <= rows; j++) lines.push(`M${x(0)} ${y(j)}H${x(columns)}`);
  return svg("path", { class: "grid", d: lines.join("") });
}

/** The source words that were known when each word was written. */
function known({ x, y }, delays) {
  const bars = delays.map((delay, t) => `M${x(0)} ${y(t)}H${x(delay)}V${y(t + 1)}H${x(0)}Z`);
  return svg("path", { class: "known", d: bars.join("") });
}

function stairs({ x, y }, { delays, tone, chosen, live }, heard, sketch) {
  const steps = delays.map((delay, t) => `H${x(delay)}V${y(t + 1)}`);
  const end = live ? Math.max(heard, delays.at(-1) ?? 0) : (delays.at(-1) ?? 0);
  const path = svg("path", { class: "stairs", d: `M${x(0)} ${y(0)}${steps.join("")}H${x(end)}` });
  const group = svg("g", { class: `track-path${chosen ? " chosen" : ""}${sketch ? " sketch" : ""}`, "data-tone": tone });
  group.append(path);
  if (chosen && live && !sketch) group.append(svg("circle", { class: "tip", cx: x(end), cy: y(delays.length), r: 5 }));
  return group;
}

function point({ x, y, cell }, { t, source, anticipated }) {
  const size = Math.max(2, Math.min(5, cell / 6));
  const place = { cx: x(source - 0.5), cy: y(t + 0.5), r: anticipated ? size + 1.5 : size };
  return svg("circle", { class: anticipated ? "dot ahead" : "dot", ...place });
}

function labels({ font: size, left, top, x, y }, source, target, dots) {
  const group = svg("g", { class: "labels", "font-size": size });
  if (left < 20) return group; // no room for labels
  const ahead = new Set(dots.filter((dot) => dot.anticipated).map((dot) => dot.t));
  const slope = (top - GAP) / Math.sin((SLOPE * Math.PI) / 180);
  source.forEach((word, i) => {
    const place = `translate(${x(i + 0.5) + size * 0.3} ${top - GAP}) rotate(${-SLOPE})`;
    group.append(svg("text", { class: "source-label", transform: place }, shortened(word, slope / size)));
  });
  target.forEach((word, t) => {
    const place = { x: left - GAP, y: y(t + 0.5) + size * 0.35, class: ahead.has(t) ? "target-label ahead" : "target-label" };
    group.append(svg("text", place, shortened(word, (left - GAP) / size)));
  });
  return group;
}

/** A label shortened to `room` times its font size. */
function shortened(word, room) {
  const fits = Math.max(4, Math.floor(room * COLUMNS_AN_EM));
  if (width(word) <= fits) return word;
  const signs = [...word];
  while (width(signs.join("")) > fits - 1) signs.pop();
  return `${signs.join("")}…`;
}

/** The staircase as text, for screen readers. */
export function described(name, source, words) {
  if (!source.length) return `${name}: no source words yet.`;
  const runs = [];
  for (const { text, delay } of words) {
    if (runs.at(-1)?.delay === delay) runs.at(-1).texts.push(text);
    else runs.push({ delay, texts: [text] });
  }
  const written = runs.map(({ delay, texts }) => `after ${delay} “${texts.join(" ")}”`);
  return `${name}, ${source.length} source words: ${written.join(", ") || "nothing written yet"}.`;
}
