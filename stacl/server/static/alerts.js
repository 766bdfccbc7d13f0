// What went wrong, where everybody sees it, until it is dismissed.

import { el } from "./dom.js";

const MOST = 3;

export class Alerts {
  constructor(root) {
    this.root = root;
  }

  show(text) {
    for (const old of this.root.children) if (old.dataset.text === text) old.remove();
    const close = el("button", { type: "button", class: "plain", "aria-label": "Dismiss" }, "×");
    const alert = el("div", { class: "alert", "data-text": text }, el("p", {}, text), close);
    close.addEventListener("click", () => alert.remove());
    this.root.append(alert);
    while (this.root.children.length > MOST) this.root.firstChild.remove();
  }
}
