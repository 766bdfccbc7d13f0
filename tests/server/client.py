"""A client for tests: numbers what it says, keeps what it hears, and can come back after a drop."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Callable
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from stacl.live.translator import Translator

PATIENCE = 20  # seconds for an answer on a busy machine


class Client:
    def __init__(self, url: str, *, begin: bool = True, **start: Any) -> None:
        self.url, self.seq = url, 0
        self.said: list[dict[str, Any]] = []
        self._open = contextlib.ExitStack()
        self.events: list[dict[str, Any]] = []  # the numbered messages
        self.errors: list[dict[str, Any]] = []
        self.socket = self.connect()
        if begin:
            self.send("start", number=False, **start)
            self.facts = self.answer()
            assert self.facts["type"] == "started", self.facts

    def connect(self, **options: Any) -> ClientConnection:
        self._open.close()
        return self._open.enter_context(connect(self.url, open_timeout=PATIENCE, close_timeout=1, **options))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def send(self, kind: str, *, number: bool = True, **fields: Any) -> None:
        message = {"type": kind, **fields}
        if number:
            self.seq += 1
            message["seq"] = self.seq
            self.said.append(message)
        self.raw(json.dumps(message))

    def raw(self, text: str | bytes) -> None:
        self.socket.send(text)

    def text(self, text: str) -> None:
        self.send("text", text=text)

    def answer(self) -> dict[str, Any]:
        """The next message; numbered ones are kept."""
        message = json.loads(self.socket.recv(timeout=PATIENCE))
        if "n" in message:
            assert message["n"] == len(self.events) + 1, "lost or repeated"
            self.events.append(message)
        elif message["type"] == "error":
            self.errors.append(message)
        return message

    def until(self, wanted: Callable[[dict[str, Any]], bool] | str) -> dict[str, Any]:
        """The first message of this type, or for which this is true."""
        while True:
            message = self.answer()
            if message["type"] == wanted if isinstance(wanted, str) else wanted(message):
                return message

    def finish(self) -> list[dict[str, Any]]:
        """Close the session; all events."""
        self.send("close")
        self.until("closed")
        return self.events

    def ended(self) -> tuple[int, str]:
        """Read until the server closes the connection; the code and the reason."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                self.answer()
        assert self.socket.close_code is not None
        return self.socket.close_code, self.socket.close_reason or ""

    def drop(self) -> None:
        """The network fails: no farewell, and what was on its way is lost."""
        self.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.socket.shutdown(socket.SHUT_RDWR)

    def resume(self) -> dict[str, Any]:
        """Come back and say again what was not taken."""
        self.socket = self.connect()
        self.send("resume", number=False, session=self.facts["session"], received=len(self.events))
        answer = self.answer()
        if answer["type"] == "resumed":
            for message in self.said[answer["accepted"] :]:
                self.raw(json.dumps(message))
        return answer

    def words(self, track: int = 0) -> list[tuple[str, int, int]]:
        """(text, delay, sentence) of what was said on a track."""
        return [
            (event["text"], event["delay"], event["segment"])
            for event in self.events
            if event["type"] == "word" and event["track"] == track
        ]


def alone(
    translator: Translator, policy: str | None, text: str, *, segment: bool = True
) -> tuple[list[tuple[str, int, int]], list[tuple[str, ...]]]:
    """What a session of its own says to a text: the words, and the source words of each sentence."""
    session = translator.stream(policy, segment=segment)
    said = session.feed(text) + session.close()
    return [(word.text, word.delay, word.sentence) for word in said], [trace.source for trace in session.traces]
