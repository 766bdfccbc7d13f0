"""Many sessions at once on one server: how late words come, and whether anything is dropped or mixed up.

A real `stacl serve` in a process of its own, and all clients in this one, over the loopback. Each client streams a
text of its own, word by word at a speaker's pace. Afterwards every session's words are compared with those of the
same text translated alone, so figures of a server that mixes anything up are never printed.

    python -m benchmarks.server                                # 200 sessions, two words a second, for a minute
    python -m benchmarks.server runs/my-model --text speech.de --sessions 50
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy is imported

from websockets.asyncio.client import connect

from stacl.runs import pretrained

GERMAN = """Ein Mann schläft auf dem grünen Sofa.
Zwei junge Frauen laufen schnell durch den Park, während es regnet.
Der kleine Hund spielt mit einem roten Ball im Wasser.
Mehrere Leute stehen vor einem Gebäude und warten auf den Bus.
Ein Kind in einem blauen Hemd isst ein Eis.
Gestern haben wir im Garten gegessen, heute bleiben wir im Haus.
Eine Frau mit einem großen Hut liest am Strand ein Buch.
Die Arbeiter reparieren die Straße, obwohl es schon dunkel ist.
Ein Junge springt von einer Mauer in den Schnee.
Drei Männer tragen einen schweren Tisch die Treppe hinauf.
Auf dem Markt verkauft eine alte Frau Blumen und Gemüse.
Das Mädchen hat seinem Bruder gestern ein Fahrrad geschenkt.""".splitlines()


@dataclass
class Client:
    """What one listener sent and heard."""

    text: str
    sent: list[float] = field(default_factory=list)  # when each source word went out
    words: list[tuple[str, int, int]] = field(default_factory=list)  # text, delay, sentence
    waited: list[float] = field(default_factory=list)  # as the server says, of each word
    delays: list[float] = field(default_factory=list)  # as the client sees it: from the word that was needed
    complete: bool = False

    async def run(self, url: str, policy: str, pace: float, start: float) -> None:
        await asyncio.sleep(start)
        async with connect(url, compression=None, max_queue=None) as socket_:
            await socket_.send(json.dumps({"type": "start", "policies": [policy]}))
            await socket_.recv()
            listening = asyncio.create_task(self._listen(socket_))
            begin = time.perf_counter()
            for number, word in enumerate(self.text.split(), start=1):
                # By the clock, not by pauses: a late client must not become a slower speaker.
                await asyncio.sleep(max(0.0, begin + number * pace - time.perf_counter()))
                self.sent.append(time.perf_counter())
                await socket_.send(json.dumps({"type": "text", "seq": number, "text": f"{word} "}))
            await socket_.send(json.dumps({"type": "close", "seq": number + 1}))
            await listening

    async def _listen(self, socket_) -> None:
        before, length = 0, 0  # source words of earlier sentences, and of the present one
        async for text in socket_:
            now = time.perf_counter()
            message = json.loads(text)
            if message["type"] == "heard":
                before += length if message["index"] == 1 else 0
                length = message["index"]
            elif message["type"] == "word":
                self.words.append((message["text"], message["delay"], message["segment"]))
                self.waited.append(message["waited"])
                needed = before + message["delay"] - 1
                # A doubtful end of a sentence is decided by the word after it: the one that the server waited for.
                allowed = min(self.sent[needed : needed + 2], key=lambda sent: abs(now - message["waited"] - sent))
                self.delays.append(now - allowed)
            elif message["type"] == "error":
                raise RuntimeError(f"refused: {message['code']}")
            self.complete = message["type"] == "closed"


class Process:
    """The server, watched from outside."""

    def __init__(self, model: str, port: int, options: list[str]) -> None:
        command = [sys.executable, "-m", "stacl", "serve", model, "--port", str(port), *options]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        self.announced = self._process.stderr.readline().strip()
        self._url = f"http://127.0.0.1:{port}/health"

    def wait_until_ready(self) -> None:
        for _ in range(600):
            if self._process.poll() is not None:
                sys.exit(self.announced or "the server did not start")
            with contextlib.suppress(OSError), urllib.request.urlopen(self._url):
                return
            time.sleep(0.1)
        sys.exit("the server does not answer")

    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)


def machine_seconds() -> float:
    """CPU seconds that everything on this machine has used."""
    ticks = list(map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]))
    return (sum(ticks) - sum(ticks[3:5])) / os.sysconf("SC_CLK_TCK")  # but idle, and waiting for a disk


def texts(lines: list[str], sessions: int, words: int) -> Iterator[str]:
    """A text of its own for each session, from the middle of a sentence on: speakers do not begin all at once."""
    rng = random.Random(1)
    for _ in range(sessions):
        chosen = rng.choice(lines).split()
        del chosen[: rng.randrange(len(chosen))]
        while len(chosen) < words:
            chosen += rng.choice(lines).split()
        yield " ".join(chosen[:words])


async def stream(clients: list[Client], url: str, policy: str, pace: float, server: Process) -> list[float]:
    """Run all clients; the server's memory, looked at each second."""
    rng = random.Random(2)
    tasks = [asyncio.create_task(client.run(url, policy, pace, rng.uniform(0, 2))) for client in clients]
    everybody = asyncio.gather(*tasks)
    memory = [server.megabytes()]
    while not everybody.done():
        await asyncio.wait((everybody,), timeout=1)
        memory.append(server.megabytes())
    await everybody
    return memory


def mixed_up(clients: list[Client], model: str, policy: str) -> int:
    """Sessions whose words are not those of their text translated alone."""
    import stacl

    translator, wrong = stacl.load(model), 0
    for client in clients:
        session = translator.stream(policy, segment=True)
        said = session.feed(f"{client.text} ") + session.close()
        wrong += client.words != [(word.text, word.delay, word.sentence) for word in said]
    return wrong


def milliseconds(times: list[float]) -> str:
    ordered = sorted(times)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"{1000 * statistics.median(ordered):.1f} | {1000 * last:.1f} | {1000 * ordered[-1]:.1f}"


def report(clients: list[Client], memory: list[float], used: dict[str, float], seconds: float) -> None:
    source, target = (sum(map(len, lists)) for lists in ([c.sent for c in clients], [c.words for c in clients]))
    print("| sessions | dropped | mixed up | words/s in | words/s out | MB before | most | after |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    print(
        f"| {len(clients)} | 0 | 0 | {source / seconds:.0f} | {target / seconds:.0f} | "
        f"{memory[0]:.0f} | {max(memory):.0f} | {memory[-1]:.0f} |"
    )
    shares = ", ".join(f"{who} {100 * cpu / seconds:.0f} %" for who, cpu in used.items())
    print(f"\nshare of one core: {shares}")
    print("\n| delay of a word, ms | median | 99th percentile | most |\n|---|--:|--:|--:|")
    print(f"| in the server (`waited`) | {milliseconds([t for c in clients for t in c.waited])} |")
    print(f"| sent to heard, by the client's clock | {milliseconds([t for c in clients for t in c.delays])} |")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shipped = [name for name in pretrained.names() if name.endswith("de-en")]
    parser.add_argument(
        "model",
        nargs="?" if shipped else None,
        default=shipped[-1] if shipped else None,
        help="a shipped model or a folder that translates from German (default: %(default)s)",
    )
    parser.add_argument("--text", type=Path, help="source sentences, a line each (default: a few German ones)")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each session speaks (default 60)")
    parser.add_argument("--pace", type=float, default=0.5, help="seconds from word to word (default 0.5)")
    parser.add_argument("--policy", default="wait-k:3")
    options = parser.parse_args()
    lines = GERMAN if options.text is None else options.text.read_text(encoding="utf-8").splitlines()
    spoken = max(1, int(options.seconds / options.pace))
    clients = [Client(text) for text in texts([line for line in lines if line.strip()], options.sessions, spoken)]
    port = free_port()
    server = Process(options.model, port, ["--limit", f"sessions={options.sessions + 10}"])
    server.wait_until_ready()
    began = time.perf_counter()
    before = (server.cpu_seconds(), time.process_time(), machine_seconds())
    memory = asyncio.run(stream(clients, f"ws://127.0.0.1:{port}/live", options.policy, options.pace, server))
    seconds = time.perf_counter() - began
    after = (server.cpu_seconds(), time.process_time(), machine_seconds())
    ours, clients_own, all_of_it = (late - early for early, late in zip(before, after, strict=True))
    used = {"server": ours, "clients": clients_own, "all other programs": max(0.0, all_of_it - ours - clients_own)}
    code = server.stop()
    dropped = sum(not client.complete for client in clients)
    wrong = mixed_up(clients, options.model, options.policy)
    if dropped or wrong or code:
        sys.exit(f"{dropped} sessions were dropped, {wrong} said something else than alone, exit code {code}")
    print(
        f"{options.model}, {options.policy}, a word each {options.pace:g} s, {os.cpu_count()} cores, {seconds:.0f} s\n"
    )
    report(clients, memory, used, seconds)


if __name__ == "__main__":
    main()
