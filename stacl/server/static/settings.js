// The parameters of the page and its stored settings. If the browser forbids storage, nothing is stored.

export const parameters = new URLSearchParams(location.search);
export const token = takeToken();

/** Move the token from the address bar, where others could read it, to the storage of this tab. */
function takeToken() {
  const given = parameters.get("token");
  if (given === null) return kept(() => sessionStorage.getItem("stacl.token"), null);
  parameters.delete("token");
  const rest = parameters.toString();
  history.replaceState(null, "", location.pathname + (rest ? `?${rest}` : "") + location.hash);
  kept(() => sessionStorage.setItem("stacl.token", given));
  return given;
}

/** A URL on the page's own server, with the token if there is one. */
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
