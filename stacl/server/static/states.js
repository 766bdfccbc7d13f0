// What a connection's state is called where readers see it.

export const STATES = {
  connecting: "Connecting…",
  live: "Connected",
  waiting: "Connection lost. Trying again…",
  asleep: "Asleep until you speak",
  refused: "Not connected. Try again",
};
/** Why it waits, if the server has said so: by the code of its error. */
export const REASONS = {
  full: "The server is full. Trying again…",
  shutdown: "The server has stopped. Trying again…",
};

export function stateText(name, reason) {
  return (name === "waiting" && REASONS[reason]) || STATES[name];
}
