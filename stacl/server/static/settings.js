// What the page was called with, and what it remembers. A browser may forbid storage: then nothing is remembered.

export const parameters = new URLSearchParams(location.search);
export const token = takeToken();

/** The token leaves the address bar, where a projector would show it, and stays in this tab. */
function takeToken() {
  const given = parameters.get("token");
  if (given === null) return kept(() => sessionStorage.getItem("stacl.token"), null);
  parameters.delete("token");
  const rest = parameters.toString();
  history.replaceState(null, "", location.pathname + (rest ? `?${rest}` : "") + location.hash);
  kept(() => sessionStorage.setItem("stacl.token", given));
  return given;
}

/** An address on the page's own server, with the token if there is one. */
export function address(path, websocket = false) {
  const url = new URL(path, document.baseURI);
  if (websocket) url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  if (token !== null) url.searchParams.set("token", token);
  return url;
}

export function remembered(name, otherwise) {
  return kept(() => localStorage.getItem(`stacl.${name}`), null) ?? otherwise;
}

export function remember(name, value) {
  kept(() => localStorage.setItem(`stacl.${name}`, value));
}

function kept(action, otherwise) {
  try {
    return action();
  } catch {
    return otherwise;
  }
}
