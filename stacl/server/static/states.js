// The texts for the states of a connection.

export const STATES = {
  connecting: "Connecting…",
  live: "Connected",
  waiting: "Connection lost. Retrying…",
  asleep: "Idle until new text",
  refused: "Not connected. Retry",
};
/** Texts for `waiting` by the error code of the server. */
export const REASONS = {
  full: "The server is full. Retrying…",
  shutdown: "The server has stopped. Retrying…",
};

export function stateText(name, reason) {
  return (name === "waiting" && REASONS[reason]) || STATES[name];
}
