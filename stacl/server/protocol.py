"""The messages of docs/api.md: what a client sends, checked, as small typed values; and how it is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from stacl.policies.base import Policy, policy
from stacl.support import plugins, validation
from stacl.support.errors import UserError, suggest

_LONGEST_QUOTE = 300  # characters of an answer that quotes what came
_LONGEST_POLICY = 100
# What is said when a connection is closed for a reason of this name; the others are 1008, a rule was broken.
_CLOSE_CODES = {"too-large": 1009, "shutdown": 1001, "full": 1013, "internal": 1011, "taken-over": 4001}


class Refusal(Exception):  # noqa: N818 (it is told, more often than it is raised)
    """What the client is told. After a fatal one its connection is closed."""

    def __init__(self, code: str, message: str, fatal: bool = False) -> None:
        super().__init__(code)
        self.code, self.fatal = code, fatal
        # It may quote half a character, which no message can hold.
        message = message.encode("utf-8", "backslashreplace").decode()
        self.message = message if len(message) <= _LONGEST_QUOTE else f"{message[:_LONGEST_QUOTE]}..."

    @property
    def close_code(self) -> int:
        return _CLOSE_CODES.get(self.code, 1008)

    def made_fatal(self) -> Refusal:
        return Refusal(self.code, self.message, fatal=True)

    def text(self, accepted: int | None = None) -> str:
        """As JSON. A fatal one says which messages of the client were taken before: the others may be sent again."""
        content = {"type": "error", "code": self.code, "message": self.message, "fatal": self.fatal}
        return json.dumps(content if accepted is None else content | {"accepted": accepted})


@dataclass(frozen=True)
class Start:
    model: str | None = None
    policies: tuple[str, ...] | None = None
    segment: bool = True
    align: bool = False


@dataclass(frozen=True)
class Resume:
    session: str
    received: int


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Change:
    """A track goes on under another policy."""

    track: int
    policy: Policy


@dataclass(frozen=True)
class End:
    pass


@dataclass(frozen=True)
class Close:
    pass


Greeting = Start | Resume
Command = Text | Change | End | Close

_FIELDS: dict[str, tuple[str, ...]] = {
    "start": ("model", "policies", "segment", "align"),
    "resume": ("session", "received"),
    "text": ("seq", "text"),
    "policy": ("seq", "track", "policy"),
    "end": ("seq",),
    "close": ("seq",),
}
GREETINGS = ("start", "resume")


def decode(text: str) -> dict[str, Any]:
    """A message as the dictionary that it is."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal("bad-message", "expected a JSON object, and this is no JSON") from None
    if not isinstance(found, dict):
        raise Refusal("bad-message", f"expected a JSON object, not a {type(found).__name__}")
    return found


def kind_of(found: dict[str, Any]) -> str:
    """The type of a message, once no field of it is strange."""
    kind = found.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        hint = suggest(kind, _FIELDS) if isinstance(kind, str) else f"; known: {', '.join(_FIELDS)}"
        raise Refusal("bad-message", f"no message has the type {kind!r}{hint}")
    strange = found.keys() - {"type", *_FIELDS[kind]}
    if strange:
        name = min(strange)
        raise Refusal("bad-message", f"{kind!r} has no field {name!r}{suggest(name, _FIELDS[kind])}")
    return kind


def greeting(kind: str, found: dict[str, Any]) -> Greeting:
    """The first message of a connection."""
    try:
        if kind == "resume":
            return Resume(
                validation.string("session", found.get("session")), validation.whole("received", found.get("received"))
            )
        model, policies = found.get("model"), found.get("policies")
        return Start(
            None if model is None else validation.string("model", model),
            None if policies is None else validation.strings("policies", policies),
            validation.boolean("segment", found.get("segment", True)),
            validation.boolean("align", found.get("align", False)),
        )
    except UserError as error:
        raise Refusal("bad-message", str(error)) from None


def command(kind: str, found: dict[str, Any]) -> Command:
    """A message of a running session."""
    try:
        if kind == "text":
            return Text(validation.string("text", found.get("text")))
        if kind == "policy":
            track = validation.whole("track", found.get("track"))
            return Change(track, safe_policy(validation.string("policy", found.get("policy"))))
    except UserError as error:
        raise Refusal("bad-message", str(error)) from None
    return End() if kind == "end" else Close()


def safe_policy(spec: str) -> Policy:
    """A policy that a stranger may ask for: a known name. One from a file would run code."""
    name = spec.strip().partition(":")[0]
    try:
        if len(spec) > _LONGEST_POLICY:
            raise UserError("expected a policy such as wait-k:3 or wait-k:3,c=0.25")
        plugins.check("policies", name)
        return policy(spec).settled()
    except UserError as error:
        raise Refusal("bad-policy", str(error)) from None
