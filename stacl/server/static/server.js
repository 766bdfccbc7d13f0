// The server's plain answers.

import { address } from "./settings.js";

/** The models that the server has: {name, source, target, policy}. */
export async function models() {
  let answer;
  try {
    answer = await fetch(address("models"));
  } catch {
    throw new Error("The server does not answer. Is `stacl serve` running?");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.message ?? `The server answered ${answer.status}.`);
  return found.models;
}
