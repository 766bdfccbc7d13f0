// Loaded before the page is painted, so that a dark room is never lit by a white flash. Not a module for that reason.
(() => {
  const root = document.documentElement;
  const asked = new URLSearchParams(location.search).get("theme");
  let stored = null;
  try {
    stored = localStorage.getItem("stacl.theme");
  } catch {
    // Storage is forbidden: the system's preference decides.
  }
  const chosen = asked ?? stored;
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  if (new URLSearchParams(location.search).get("view") === "captions") root.dataset.view = "captions";
})();
