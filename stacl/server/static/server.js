// The server's plain answers.

import { address, token } from "./settings.js";

/** The models that the server has: {name, source, target, policy}. */
export async function models() {
  let answer;
  try {
    // In a header, where no proxy writes it down.
    answer = await fetch(new URL("models", document.baseURI), token === null ? {} : { headers: { Authorization: `Bearer ${token}` } });
  } catch {
    throw new Error("The server does not answer. Is `stacl serve` running?");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(found.message ?? `The server answered ${answer.status}.`);
  return found.models;
}

/** The server is there, and says no. */
class Refused extends Error {}

/** Why a connection does not open: {message, final}, or null if the server is simply away. */
export async function obstacle() {
  try {
    await models();
  } catch (error) {
    return error instanceof Refused ? { message: error.message, final: true } : null;
  }
  const message = "The server answers, but the live connection is refused: does a proxy pass websockets and the Host header on? (docs/api.md)";
  return { message, final: false };
}
