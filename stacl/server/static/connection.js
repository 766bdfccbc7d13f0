// The client's side of the protocol (docs/api.md): numbers what it sends, and after a drop resumes so that nothing is
// lost or repeated.

const KEPT = 4096; // sent messages that may have to be sent again
const FIRST_WAIT = 250; // milliseconds before the first new try; doubled each time
const LONGEST_WAIT = 8000;
const LONGEST_TEXT = 8000; // characters of texts that are put together before they are sent again
const LATER = ["full", "shutdown"]; // a server that says so may be asked again

/**
 * `on` has the functions
 *   state(name)       connecting, live, waiting (for the next try), asleep (until something is sent), refused, closed
 *   started(message)  a new session began; resumed ones do not come here
 *   message(message)  everything numbered, each exactly once, in order
 *   error(message)    {code, message, fatal}
 */
export class Connection {
  #url;
  #on;
  #describe = null; // what to start a session with, asked for at the moment of starting
  #socket = null;
  #session = null;
  #open = false; // the server has answered: messages may go out
  #outbox = []; // {message, offered}
  #seq = 0;
  #received = 0;
  #wait = FIRST_WAIT;
  #timer = null;
  #ended = null; // why not to try again: asleep, refused or closed
  #lost = false; // the session cannot be resumed

  constructor(url, on) {
    this.#url = url;
    this.#on = on;
    addEventListener("online", () => this.retry());
    // A server on this machine needs no network.
    const near = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
    addEventListener("offline", () => near || this.#socket?.close());
  }

  /** Begin a new session, leaving the present one if there is one. `describe` returns the fields of `start`. */
  start(describe) {
    if (this.#open) this.send("close");
    this.#leave();
    this.#describe = describe;
    this.#forget([]);
    this.#connect();
  }

  send(type, fields = {}) {
    const entry = { message: { type, seq: ++this.#seq, ...fields }, offered: false };
    this.#outbox.push(entry);
    if (this.#outbox.length > KEPT) this.#outbox.shift();
    if (this.#open) this.#offer(entry);
    else if (this.#ended) this.retry();
  }

  /** Try again now, without waiting for the next turn. */
  retry() {
    if (this.#socket || !this.#describe || this.#ended === "closed") return;
    this.#ended = null;
    this.#connect();
  }

  #connect() {
    clearTimeout(this.#timer);
    this.#on.state("connecting");
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.onopen = () => socket.send(JSON.stringify(this.#greeting()));
    socket.onmessage = (event) => this.#socket === socket && this.#take(JSON.parse(event.data));
    socket.onclose = () => this.#socket === socket && this.#dropped();
  }

  #greeting() {
    if (this.#session) return { type: "resume", session: this.#session, received: this.#received };
    return { type: "start", ...this.#describe() };
  }

  #take(message) {
    if (message.type === "started") return this.#begun(message);
    if (message.type === "resumed") return this.#resumed(message);
    if (message.type === "error") return this.#failed(message);
    if (message.n <= this.#received) return;
    // A hole in the numbering: ask again for what is missing.
    if (message.n > this.#received + 1) return this.#socket.close();
    this.#received = message.n;
    if (message.type === "closed") this.#ended = "closed";
    this.#on.message(message);
  }

  #begun(message) {
    this.#session = message.session;
    this.#live();
    this.#on.started(message);
    this.#outbox.forEach((entry) => this.#offer(entry));
  }

  #resumed(message) {
    this.#live();
    this.#queue(this.#outbox.filter((entry) => entry.message.seq > message.accepted), message.accepted);
    this.#outbox.forEach((entry) => this.#offer(entry));
  }

  /** What has not been taken, in few messages, numbered from `accepted` on. */
  #queue(entries, accepted) {
    this.#outbox = [];
    for (const { message, offered } of entries) {
      const last = this.#outbox.at(-1)?.message;
      const joins = last?.type === "text" && message.type === "text" && last.text.length + message.text.length < LONGEST_TEXT;
      if (joins) last.text += message.text;
      else this.#outbox.push({ message, offered });
    }
    this.#outbox.forEach(({ message }, position) => (message.seq = accepted + position + 1));
    this.#seq = accepted + this.#outbox.length;
  }

  #live() {
    this.#open = true;
    this.#wait = FIRST_WAIT;
    this.#on.state("live");
  }

  #offer(entry) {
    entry.offered = true;
    this.#socket.send(JSON.stringify(entry.message));
  }

  #failed(message) {
    // Who was silent for long has lost nothing but the session, and gets a new one with the next word.
    if (message.code === "idle") return this.#sleep();
    if (message.fatal && !this.#open) {
      if (this.#session) this.#lost = true;
      else if (!LATER.includes(message.code)) this.#ended = "refused";
    }
    this.#on.error(message);
  }

  #sleep() {
    this.#forget([]);
    this.#open = false;
    this.#ended = "asleep";
  }

  #dropped() {
    this.#socket = null;
    this.#open = false;
    if (this.#ended === "asleep" && this.#outbox.length) this.#ended = null; // woken while falling asleep
    if (this.#ended) return this.#on.state(this.#ended);
    // What was never sent goes into the new session; what was sent may have been heard, and is not said twice.
    if (this.#lost) this.#forget(this.#outbox.filter((entry) => !entry.offered));
    this.#on.state("waiting");
    this.#timer = setTimeout(() => this.retry(), this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
  }

  #forget(outbox) {
    this.#session = null;
    this.#lost = false;
    this.#ended = null;
    this.#received = 0;
    this.#queue(outbox, 0);
  }

  #leave() {
    clearTimeout(this.#timer);
    this.#open = false;
    const socket = this.#socket;
    this.#socket = null; // its handlers look at this and keep still
    socket?.close();
  }
}
