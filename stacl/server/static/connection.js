// The client's side of the protocol (docs/api.md): numbers what it sends, and after a drop resumes so that nothing is
// lost or repeated.

const KEPT = 4096; // sent messages that may have to be sent again
const PARTING = 2000; // milliseconds that a session has for its last words before the next one begins
const FIRST_WAIT = 250; // milliseconds before the first new try; doubled each time
const LONGEST_WAIT = 8000;
const LONGEST_TEXT = 8000; // characters of one message: far below the server's 64 KiB, however they are encoded
const SILENCE = 15000; // milliseconds without an answer to what was sent: a connection may be dead without anybody saying so
const SUSPICIOUS = 2; // tries in a row that did not open before somebody should ask why
const BYTES = 8; // more than any character takes in a message
const LATER = ["full", "shutdown"]; // a server that says so may be asked again
const GONE = ["unknown-session", "lost"]; // the session; a new one begins

/**
 * `on` has the functions
 *   state(name, reason)
 *                     connecting, live, waiting (for the next try), asleep (until something is sent), refused;
 *                     the reason is the code of the error that it waits for, if there was one
 *   started(message)  a new session began; resumed ones do not come here
 *   message(message)  everything numbered, each exactly once, in order
 *   error(message)    {code, message, fatal}, unless the next try mends it
 *   unopened()        several tries in a row did not even open: a browser is not told why, so ask the server otherwise
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
  #unopened = 0; // tries in a row that did not open
  #timer = null;
  #ended = null; // why not to try again: asleep or refused
  #lost = false; // the session cannot be resumed
  #reason = null; // why it waits, as the server said
  #watch = null; // runs while an answer is awaited
  #parting = null; // runs while the last words of a session that was left are awaited
  #longest = LONGEST_TEXT; // what the server takes may be less

  constructor(url, on) {
    this.#url = url;
    this.#on = on;
    addEventListener("online", () => this.retry());
    // A server on this machine needs no network.
    const near = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
    addEventListener("offline", () => near || this.#socket?.close());
  }

  /**
   * Begin a new session; the present one, if there is one, may say its last words before. `describe` returns the fields
   * of `start`. What is sent from now on is for the new one.
   */
  start(describe) {
    this.#describe = describe;
    if (this.#open) {
      this.send("close");
      this.#open = false;
      this.#parting = setTimeout(() => this.#next(), PARTING);
    } else if (this.#parting) {
      this.#outbox = this.#outbox.filter((entry) => entry.offered); // meant for a session that never began
    } else {
      this.#outbox = [];
      this.#next();
    }
  }

  /** Whether what is sent goes out at once. */
  get live() {
    return this.#open;
  }

  send(type, fields = {}) {
    if (type !== "text") return this.#put({ type, ...fields });
    for (const text of pieces(fields.text, this.#longest)) this.#put({ type, text });
  }

  #put(message) {
    const last = this.#outbox.at(-1);
    // While nobody listens, texts are put together: however much is said, all of it is kept.
    const joined = !this.#open && last && !last.offered && this.#join(last.message, message);
    if (!joined) this.#outbox.push({ message: { ...message, seq: ++this.#seq }, offered: false });
    if (this.#outbox.length > KEPT && this.#outbox[0].offered) this.#outbox.shift();
    if (this.#open) this.#offer(this.#outbox.at(-1));
    else if (this.#ended) this.retry();
  }

  /** Let one text go on with another, if they are short enough together. */
  #join(first, second) {
    const both = first.type === "text" && second.type === "text";
    if (!both || first.text.length + second.text.length > this.#longest) return false;
    first.text += second.text;
    return true;
  }

  /** Try again now, without waiting for the next turn. */
  retry() {
    if (this.#socket || !this.#describe) return;
    this.#ended = null;
    this.#connect();
  }

  /** Try no more until something is sent or `retry` is called. */
  giveUp() {
    clearTimeout(this.#timer);
    this.#ended = "refused";
    if (!this.#socket) this.#on.state("refused");
  }

  #connect(quietly = false) {
    clearTimeout(this.#timer);
    if (!quietly) this.#on.state("connecting");
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    this.#unopened += 1;
    socket.onopen = () => {
      this.#unopened = 0;
      socket.send(JSON.stringify(this.#greeting()));
    };
    socket.onmessage = (event) => {
      if (this.#socket !== socket) return;
      this.#unwatch();
      this.#take(JSON.parse(event.data));
    };
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
    this.#on.message(message);
    if (message.type === "closed") this.#next();
  }

  #begun(message) {
    this.#session = message.session;
    this.#longest = Math.min(LONGEST_TEXT, Math.floor(message.limits.message_bytes / BYTES));
    this.#queue(this.#outbox, 0);
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
      const cut = message.type === "text" ? pieces(message.text, this.#longest).map((text) => ({ ...message, text })) : [message];
      for (const part of cut) {
        const last = this.#outbox.at(-1)?.message;
        if (!last || !this.#join(last, part)) this.#outbox.push({ message: part, offered });
      }
    }
    this.#outbox.forEach(({ message }, position) => (message.seq = accepted + position + 1));
    this.#seq = accepted + this.#outbox.length;
  }

  #live() {
    this.#open = true;
    this.#wait = FIRST_WAIT;
    this.#reason = null;
    this.#on.state("live");
  }

  #offer(entry) {
    entry.offered = true;
    this.#socket.send(JSON.stringify(entry.message));
    this.#watch ??= setTimeout(() => this.#again(), SILENCE);
  }

  /** Half a word or an empty line is not answered either: then resuming costs nothing, and nobody need be told. */
  #again() {
    if (this.#parting) return this.#next();
    this.#leave();
    this.#connect(true);
  }

  #unwatch() {
    clearTimeout(this.#watch);
    this.#watch = null;
  }

  #leave() {
    this.#unwatch();
    this.#open = false;
    const socket = this.#socket;
    this.#socket = null; // its handlers look at this and keep still
    socket?.close();
  }

  #failed(message) {
    if (message.fatal && "accepted" in message && !this.#parting) this.#untaken(message.accepted);
    // Who was silent for long has lost nothing but the session, and gets a new one with the next word.
    if (message.code === "idle") return this.#sleep();
    if (message.fatal && !this.#open) {
      if (this.#session) this.#lost = true;
      else if (!LATER.includes(message.code)) this.#ended = "refused";
    }
    if (LATER.includes(message.code)) this.#reason = message.code;
    else if (!GONE.includes(message.code)) this.#on.error(message);
    if (message.fatal) this.#open = false; // what is said from now on waits
  }

  /** The session is over: what it did not take was not heard, and may be said again. */
  #untaken(accepted) {
    this.#outbox = this.#outbox.filter((entry) => entry.message.seq > accepted);
    this.#outbox.forEach((entry) => (entry.offered = false));
  }

  #sleep() {
    this.#forget(this.#outbox.filter((entry) => !entry.offered));
    this.#open = false;
    this.#ended = "asleep";
  }

  #dropped() {
    this.#leave();
    if (this.#parting) return this.#next();
    if (this.#ended === "asleep" && this.#outbox.length) this.#ended = null; // woken while falling asleep
    if (this.#ended) return this.#on.state(this.#ended);
    // What was never sent goes into the new session; what was sent may have been heard, and is not said twice.
    if (this.#lost) this.#forget(this.#outbox.filter((entry) => !entry.offered));
    this.#on.state("waiting", this.#reason);
    if (this.#unopened === SUSPICIOUS) this.#on.unopened();
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

  /** Leave the session that was, and begin the next with what was said for it. */
  #next() {
    clearTimeout(this.#parting);
    clearTimeout(this.#timer);
    this.#parting = null;
    this.#leave();
    this.#forget(this.#outbox.filter((entry) => !entry.offered));
    this.#connect();
  }
}

/** A long text in pieces that fit a message, never cut inside a character. */
export function pieces(text, longest) {
  const found = [];
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + longest, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    found.push(text.slice(start, end));
    start = end;
  }
  return found;
}

function isHighSurrogate(code) {
  return code >= 0xd800 && code <= 0xdbff;
}
