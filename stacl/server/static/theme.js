// Sets the theme before the first paint, to avoid a white flash. Modules run too late, so this is not one.
(() => {
  const root = document.documentElement;
  const asked = new URLSearchParams(location.search).get("theme");
  let stored = null;
  try {
    stored = localStorage.getItem("stacl.theme");
  } catch {
    // The browser forbids storage: use the preference of the system.
  }
  const chosen = asked ?? stored;
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  if (new URLSearchParams(location.search).get("view") === "captions") root.dataset.view = "captions";
})();
