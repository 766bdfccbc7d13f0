// Passes the server's messages from the page to caption windows of the same browser.

const NAME = `stacl ${location.origin}`;
const SILENCE = 5000; // milliseconds without a message after which a caption window may follow another page

/** The page's side: posts every message, and sends new caption windows the current and the previous sentence. */
export class Mirror {
  #channel = globalThis.BroadcastChannel ? new BroadcastChannel(NAME) : null;
  #page = `${Date.now()} ${Math.random()}`;
  #started = null;
  #recent = [];

  constructor() {
    if (this.#channel) this.#channel.onmessage = ({ data }) => data.kind === "hello" && this.#welcome();
  }

  started(message) {
    this.#started = { ...message, policies: [...message.policies] };
    this.#recent = [];
    this.#post("started", this.#started);
  }

  message(message) {
    if (message.type === "policy") this.#started.policies[message.track] = message.policy;
    if (message.type === "heard" && message.index === 1) {
      this.#recent = this.#recent.filter((old) => old.segment >= message.segment - 1);
    }
    this.#recent.push(message);
    this.#post("message", message);
  }

  #welcome() {
    if (!this.#started) return;
    this.#post("started", this.#started);
    this.#recent.forEach((message) => this.#post("message", message));
  }

  #post(kind, message) {
    this.#channel?.postMessage({ kind, page: this.#page, session: this.#started.session, message });
  }
}

/** The caption window's side: follows one page, each message once, and another page when the first is silent. */
export class Follower {
  #on;
  #page = null;
  #session = null;
  #received = new Map(); // session -> number of its last message
  #heard = -Infinity; // when the followed page last sent a message

  /** `on` has started(message) and message(message). */
  constructor(on) {
    this.#on = on;
    const channel = new BroadcastChannel(NAME);
    channel.onmessage = ({ data }) => this.#take(data, channel);
    channel.postMessage({ kind: "hello" });
  }

  #take({ kind, page, session, message }, channel) {
    if (kind === "hello") return;
    if (page !== this.#page) {
      if (performance.now() - this.#heard < SILENCE) return;
      if (kind !== "started") return channel.postMessage({ kind: "hello" });
      this.#page = page;
    }
    if (kind === "started") this.#begin(session, message);
    else if (session === this.#session && message.n > this.#received.get(session)) {
      this.#received.set(session, message.n);
      this.#heard = performance.now();
      this.#on.message(message);
    }
  }

  #begin(session, message) {
    if (session === this.#session) return;
    this.#session = session;
    if (!this.#received.has(session)) this.#received.set(session, 0);
    this.#on.started(message);
  }
}
