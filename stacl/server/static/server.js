// Requests to the HTTP endpoints of the server.

import { address, token } from "./settings.js";

/** The models of the server: {name, source, target, policy}. */
export async function models() {
  let answer;
  try {
    // The token goes into a header, which proxies do not log.
    answer = await fetch(new URL("models", document.baseURI), token === null ? {} : { headers: { Authorization: `Bearer ${token}` } });
  } catch {
    throw new Error("The server does not answer. Is `stacl serve` running?");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(found.message ?? `The server answered ${answer.status}.`);
  return found.models;
}

/** The server answered with an error. */
class Refused extends Error {}

/** Why a connection does not open: {message, final}, or null if the server cannot be reached. */
export async function obstacle() {
  try {
    await models();
  } catch (error) {
    return error instanceof Refused ? { message: error.message, final: true } : null;
  }
  const message = "The server answers, but the live connection is refused. A proxy must forward websockets and the Host header (see docs/api.md).";
  return { message, final: false };
}
