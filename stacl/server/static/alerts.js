// Error messages at the top of the page. Each stays until it is dismissed or its cause is over.

import { el } from "./dom.js";

const MOST = 3;

export class Alerts {
  constructor(root) {
    this.root = root;
  }

  /** Show a message. `over(trouble)` removes all messages with this `trouble`. */
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
