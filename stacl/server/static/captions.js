// Captions for an overlay or a second screen: the last lines of one track on a transparent background.
//
//   ?view=captions                       the first track of a stacl page in the same browser
//   &track=wait-k:5                      another track of that page
//   &source=type | speech                a separate session instead, with &model= and &policy=
//   &size=48 &lines=2 &theme=dark|light  appearance; also &ground=dark|light|none

import { Connection } from "./connection.js";
import { el, find } from "./dom.js";
import { spaced, speechCode } from "./languages.js";
import { Follower } from "./mirror.js";
import { models, obstacle } from "./server.js";
import { address, parameters } from "./settings.js";
import { available, Speech } from "./speech.js";
import { stateText } from "./states.js";
import { Typing } from "./typing.js";

const KEPT = 4; // sentences that stay in the document
const root = find("#captions-view");
const text = find("#captions-text");
const paragraphs = new Map();
const on = { started, message };
// Only what the document shows is kept: a caption window may be open all day.
let policies = []; // of the tracks, as they are now
let first = 0; // the number of the session's first sentence
let count = 0; // sentences of all sessions
let trouble = ""; // why there is no connection, until there is one

root.hidden = false;
root.style.setProperty("--size", `${bounded("size", 48, 10, 400)}px`);
root.style.setProperty("--lines", bounded("lines", 2, 1, 12));
root.dataset.ground = parameters.get("ground") ?? "none";
const source = parameters.get("source");
if (source === "type" || source === "speech") ownSession(source).catch(({ message }) => tell(message));
else {
  new Follower(on);
  tell("Captions of a stacl page in this browser appear here.");
}

function bounded(name, otherwise, least, most) {
  const value = Number(parameters.get(name) ?? otherwise);
  return Math.min(most, Math.max(least, Number.isFinite(value) ? value : otherwise));
}

function started(message) {
  first = count;
  policies = [...message.policies];
  text.lang = message.target;
}

function message(received) {
  if (received.type === "policy") policies[received.track] = received.policy;
  if (received.segment === undefined) return;
  const number = first + received.segment;
  count = Math.max(count, number + 1);
  if (received.type !== "word" || received.track !== track()) return;
  tell("");
  paragraph(number).append(received.gap, el("span", { class: "word" }, received.text));
}

/** The number of the displayed track: the one with the requested policy, or the first. */
function track() {
  const wanted = parameters.get("track");
  return Math.max(0, policies.lastIndexOf(wanted));
}

function paragraph(number) {
  if (!paragraphs.has(number)) {
    const made = el("p");
    paragraphs.set(number, made);
    text.append(made);
    if (paragraphs.size > KEPT) {
      const [oldest] = paragraphs.keys();
      paragraphs.get(oldest).remove();
      paragraphs.delete(oldest);
    }
  }
  return paragraphs.get(number);
}

async function ownSession(kind) {
  const found = await models();
  const wanted = parameters.get("model") ?? found[0].name;
  const model = found.find(({ name }) => name === wanted);
  if (!model) return tell(`Unknown model ${wanted}. Known: ${found.map(({ name }) => name).join(", ")}.`);
  // Without a policy the server uses the model's own, which clients may not be allowed to name.
  const policy = parameters.get("policy") ?? parameters.get("track");
  const connection = new Connection(address("live", true), {
    ...on,
    state: captionState,
    error: (error) => {
      if (error.fatal) trouble = error.message;
      tell(error.message);
    },
    unopened: async () => {
      const reason = await obstacle();
      if (reason?.final) connection.giveUp();
      if (reason) tell((trouble = reason.message));
    },
  });
  connection.start(() => ({ model: model.name, ...(policy && { policies: [policy] }), segment: true }));
  const send = (piece) => connection.send("text", { text: piece });
  if (kind === "type") listenToKeys(send, model);
  else listenToSpeech(send, model);
}

function captionState(name, reason) {
  if (name === "refused" || name === "connecting") return; // the reason is already displayed
  if (name === "live") trouble = "";
  tell(name === "waiting" ? trouble || stateText(name, reason) : "");
}

function listenToKeys(send, model) {
  const field = find("#captions-field");
  field.hidden = false;
  field.lang = model.source;
  new Typing(field, { send, spaced: () => spaced(model.source) });
  field.focus();
}

function listenToSpeech(send, model) {
  if (!available) return tell("This browser does not support speech recognition.");
  const speech = new Speech({ send, changed: () => {}, failed: tell });
  speech.start(speechCode(model.source), spaced(model.source));
}

function tell(what) {
  const note = find("#captions-note");
  note.textContent = what;
  note.hidden = !what;
}
