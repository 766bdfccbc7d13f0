"""Delay of words with many sessions on one server, and whether all sessions are complete and correct.

A real `stacl serve` runs in its own process, all clients in this one, over the loopback. Each client streams its own
text word by word at a fixed pace. Afterwards the words of every session are compared with those of the same text
translated alone. If any session differs, no figures are printed.

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
    """What one client sent and received."""

    text: str
    sent: list[float] = field(default_factory=list)  # when each source word was sent
    words: list[tuple[str, int, int]] = field(default_factory=list)  # text, delay, sentence
    waited: list[float] = field(default_factory=list)  # seconds for each word, as the server reports them
    delays: list[float] = field(default_factory=list)  # seconds since the allowing source word, by the client's clock
    complete: bool = False

    async def run(self, url: str, policy: str, pace: float, start: float) -> None:
        await asyncio.sleep(start)
        async with connect(url, compression=None, max_queue=None) as socket_:
            await socket_.send(json.dumps({"type": "start", "policies": [policy]}))
            await socket_.recv()
            listening = asyncio.create_task(self._listen(socket_))
            begin = time.perf_counter()
            for number, word in enumerate(self.text.split(), start=1):
                # Absolute times: a delay must not slow down the rest of the text.
                await asyncio.sleep(max(0.0, begin + number * pace - time.perf_counter()))
                self.sent.append(time.perf_counter())
                await socket_.send(json.dumps({"type": "text", "seq": number, "text": f"{word} "}))
            await socket_.send(json.dumps({"type": "close", "seq": number + 1}))
            await listening

    async def _listen(self, socket_) -> None:
        before, length = 0, 0  # source words of earlier sentences and of the current one
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
                # The next word may decide whether a sentence has ended. Then the server waited for that word.
                allowed = min(self.sent[needed : needed + 2], key=lambda sent: abs(now - message["waited"] - sent))
                self.delays.append(now - allowed)
            elif message["type"] == "error":
                raise RuntimeError(f"refused: {message['code']}")
            self.complete = message["type"] == "closed"


class Process:
    """The server process and its resources."""

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
    """CPU seconds used by all programs on this machine."""
    ticks = list(map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:9]))
    return (sum(ticks) - sum(ticks[3:5])) / os.sysconf("SC_CLK_TCK")  # without idle and I/O wait


def texts(lines: list[str], sessions: int, words: int) -> Iterator[str]:
    """A different text for each session, from the middle of a sentence, so that sentences do not end together."""
    rng = random.Random(1)
    for _ in range(sessions):
        chosen = rng.choice(lines).split()
        del chosen[: rng.randrange(len(chosen))]
        while len(chosen) < words:
            chosen += rng.choice(lines).split()
        yield " ".join(chosen[:words])


async def stream(clients: list[Client], url: str, policy: str, pace: float, server: Process) -> list[float]:
    """Run all clients. Return the memory of the server, sampled every second."""
    rng = random.Random(2)
    tasks = [asyncio.create_task(client.run(url, policy, pace, rng.uniform(0, 2))) for client in clients]
    all_clients = asyncio.gather(*tasks)
    memory = [server.megabytes()]
    while not all_clients.done():
        await asyncio.wait((all_clients,), timeout=1)
        memory.append(server.megabytes())
    await all_clients
    return memory


def wrong_sessions(clients: list[Client], model: str, policy: str) -> int:
    """The number of sessions whose words differ from those of the text translated alone."""
    import stacl

    translator, wrong = stacl.load(model), 0
    for client in clients:
        session = translator.stream(policy, segment=True)
        output = session.feed(f"{client.text} ") + session.close()
        wrong += client.words != [(word.text, word.delay, word.sentence) for word in output]
    return wrong


def milliseconds(times: list[float]) -> str:
    ordered = sorted(times)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return f"{1000 * statistics.median(ordered):.1f} | {1000 * last:.1f} | {1000 * ordered[-1]:.1f}"


def report(clients: list[Client], memory: list[float], used: dict[str, float], seconds: float) -> None:
    source, target = (sum(map(len, lists)) for lists in ([c.sent for c in clients], [c.words for c in clients]))
    print("| sessions | dropped | wrong words | words/s in | words/s out | MB before | maximum | after |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    print(
        f"| {len(clients)} | 0 | 0 | {source / seconds:.0f} | {target / seconds:.0f} | "
        f"{memory[0]:.0f} | {max(memory):.0f} | {memory[-1]:.0f} |"
    )
    shares = ", ".join(f"{who} {100 * cpu / seconds:.0f} %" for who, cpu in used.items())
    print(f"\nshare of one core: {shares}")
    print("\n| delay of a word, ms | median | 99th percentile | maximum |\n|---|--:|--:|--:|")
    print(f"| in the server (`waited`) | {milliseconds([t for c in clients for t in c.waited])} |")
    print(f"| sent to received, measured by the client | {milliseconds([t for c in clients for t in c.delays])} |")


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
        help="a shipped model or a run folder that translates from German (default: %(default)s)",
    )
    parser.add_argument("--text", type=Path, help="source sentences, one per line (default: twelve German sentences)")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each session (default 60)")
    parser.add_argument("--pace", type=float, default=0.5, help="seconds between two words (default 0.5)")
    parser.add_argument("--policy", default="wait-k:3")
    options = parser.parse_args()
    lines = GERMAN if options.text is None else options.text.read_text(encoding="utf-8").splitlines()
    words = max(1, int(options.seconds / options.pace))
    clients = [Client(text) for text in texts([line for line in lines if line.strip()], options.sessions, words)]
    port = free_port()
    server = Process(options.model, port, ["--limit", f"sessions={options.sessions + 10}"])
    server.wait_until_ready()
    began = time.perf_counter()
    before = (server.cpu_seconds(), time.process_time(), machine_seconds())
    memory = asyncio.run(stream(clients, f"ws://127.0.0.1:{port}/live", options.policy, options.pace, server))
    seconds = time.perf_counter() - began
    after = (server.cpu_seconds(), time.process_time(), machine_seconds())
    server_cpu, clients_cpu, total_cpu = (late - early for early, late in zip(before, after, strict=True))
    others_cpu = max(0.0, total_cpu - server_cpu - clients_cpu)
    used = {"server": server_cpu, "clients": clients_cpu, "all other programs": others_cpu}
    code = server.stop()
    dropped = sum(not client.complete for client in clients)
    wrong = wrong_sessions(clients, options.model, options.policy)
    if dropped or wrong or code:
        sys.exit(f"{dropped} sessions were dropped, {wrong} have wrong words, exit code {code}")
    print(
        f"{options.model}, {options.policy}, a word every {options.pace:g} s, {os.cpu_count()} cores, {seconds:.0f} s\n"
    )
    report(clients, memory, used, seconds)


if __name__ == "__main__":
    main()
