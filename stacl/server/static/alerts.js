// What went wrong, where everybody sees it, until it is dismissed or well again.

import { el } from "./dom.js";

const MOST = 3;

export class Alerts {
  constructor(root) {
    this.root = root;
  }

  /** With a `trouble`, it leaves when that is `over`. */
  show(text, trouble = "") {
    for (const old of [...this.root.children]) if (old.dataset.text === text) old.remove();
    const close = el("button", { type: "button", class: "plain", "aria-label": "Dismiss" }, "×");
    const alert = el("div", { class: "alert", "data-text": text, "data-trouble": trouble }, el("p", {}, text), close);
    close.addEventListener("click", () => alert.remove());
    this.root.append(alert);
    while (this.root.children.length > MOST) this.root.firstChild.remove();
  }

  over(trouble) {
    for (const old of [...this.root.children]) if (old.dataset.trouble === trouble) old.remove();
  }
}
