// The client side of the protocol (docs/api.md). It numbers its messages and resumes after a lost connection, so that
// nothing is lost or repeated.

const KEPT = 4096; // sent messages that may have to be sent again
const PARTING = 2000; // milliseconds to wait for the last words of a session before the next one begins
const FIRST_WAIT = 250; // milliseconds before the first retry; doubled each time
const LONGEST_WAIT = 8000;
const LONGEST_TEXT = 8000; // characters of one message; below the server's 64 KiB in any encoding
const SILENCE = 15000; // milliseconds without an answer; then the connection is assumed to be dead
const SUSPICIOUS = 2; // failed attempts in a row before `unopened` is called
const BYTES = 8; // upper bound for one character in a message
const LATER = ["full", "shutdown"]; // errors after which a retry makes sense
const GONE = ["unknown-session", "lost"]; // the session no longer exists, so a new one begins

/**
 * `on` has these functions:
 *   state(name, reason)
 *                     connecting, live, waiting (for the next retry), asleep (until something is sent), refused;
 *                     `reason` is the error code that caused the wait, if there is one
 *   started(message)  a new session began; not called after a resume
 *   message(message)  every numbered message, exactly once, in order
 *   error(message)    {code, message, fatal}, unless a retry can solve it
 *   unopened()        several attempts in a row did not open; browsers hide the reason, so ask over HTTP
 */
export class Connection {
  #url;
  #on;
  #describe = null; // returns the fields of `start`; called when a session starts
  #socket = null;
  #session = null;
  #open = false; // the server has answered, so messages may be sent
  #outbox = []; // {message, offered}
  #seq = 0;
  #received = 0;
  #wait = FIRST_WAIT;
  #unopened = 0; // failed attempts in a row
  #timer = null;
  #ended = null; // asleep or refused: no automatic retry
  #lost = false; // the session cannot be resumed
  #reason = null; // the error code that caused the wait
  #watch = null; // timer while waiting for an answer
  #parting = null; // timer while waiting for the last words of the previous session
  #longest = LONGEST_TEXT; // lowered if the server accepts less

  constructor(url, on) {
    this.#url = url;
    this.#on = on;
    addEventListener("online", () => this.retry());
    // A server on the same computer needs no network.
    const near = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
    addEventListener("offline", () => near || this.#socket?.close());
  }

  /**
   * Begin a new session. The current session, if any, first delivers its last words. `describe` returns the fields of
   * `start`. Messages sent from now on belong to the new session.
   */
  start(describe) {
    this.#describe = describe;
    if (this.#open) {
      this.send("close");
      this.#open = false;
      this.#parting = setTimeout(() => this.#next(), PARTING);
    } else if (this.#parting) {
      this.#outbox = this.#outbox.filter((entry) => entry.offered); // for a session that never began
    } else {
      this.#outbox = [];
      this.#next();
    }
  }

  /** Whether messages are sent at once. */
  get live() {
    return this.#open;
  }

  send(type, fields = {}) {
    if (type !== "text") return this.#put({ type, ...fields });
    for (const text of pieces(fields.text, this.#longest)) this.#put({ type, text });
  }

  #put(message) {
    const last = this.#outbox.at(-1);
    // While disconnected, texts are joined, so that all of them are kept within KEPT messages.
    const joined = !this.#open && last && !last.offered && this.#join(last.message, message);
    if (!joined) this.#outbox.push({ message: { ...message, seq: ++this.#seq }, offered: false });
    if (this.#outbox.length > KEPT && this.#outbox[0].offered) this.#outbox.shift();
    if (this.#open) this.#offer(this.#outbox.at(-1));
    else if (this.#ended) this.retry();
  }

  /** Append the second text to the first if both fit into one message. */
  #join(first, second) {
    const both = first.type === "text" && second.type === "text";
    if (!both || first.text.length + second.text.length > this.#longest) return false;
    first.text += second.text;
    return true;
  }

  /** Retry now, without waiting for the timer. */
  retry() {
    if (this.#socket || !this.#describe) return;
    this.#ended = null;
    this.#connect();
  }

  /** Stop retrying until something is sent or `retry` is called. */
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
    // A gap in the numbers: reconnect and resume to receive the missing messages.
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

  /** Rebuild the outbox from messages that were not accepted: joined, and numbered after `accepted`. */
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

  /** Reconnect quietly. Half a word or an empty line gets no answer either; then resuming is harmless. */
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
    this.#socket = null; // its handlers check this and do nothing
    socket?.close();
  }

  #failed(message) {
    if (message.fatal && "accepted" in message && !this.#parting) this.#untaken(message.accepted);
    // An idle client loses only the session. The next word starts a new one.
    if (message.code === "idle") return this.#sleep();
    if (message.fatal && !this.#open) {
      if (this.#session) this.#lost = true;
      else if (!LATER.includes(message.code)) this.#ended = "refused";
    }
    if (LATER.includes(message.code)) this.#reason = message.code;
    else if (!GONE.includes(message.code)) this.#on.error(message);
    if (message.fatal) this.#open = false; // later messages wait in the outbox
  }

  /** The session has ended. Messages it did not accept were not processed and may be sent again. */
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
    if (this.#ended === "asleep" && this.#outbox.length) this.#ended = null; // something was sent meanwhile
    if (this.#ended) return this.#on.state(this.#ended);
    // Unsent messages go into the new session. Sent ones may have been processed, so they are not repeated.
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

  /** Leave the previous session and begin the next with the messages that wait for it. */
  #next() {
    clearTimeout(this.#parting);
    clearTimeout(this.#timer);
    this.#parting = null;
    this.#leave();
    this.#forget(this.#outbox.filter((entry) => !entry.offered));
    this.#connect();
  }
}

/** Split a long text into pieces that fit into a message, never inside a character. */
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
