"""Validation of the messages that a client sends over `/live` (docs/api.md), and the errors it receives."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from stacl.policies.base import Policy, policy
from stacl.support import plugins
from stacl.support.errors import UserError, suggest

_LONGEST_MESSAGE = 300  # characters of an error message, which may quote what the client sent
_LONGEST_POLICY = 100
# The websocket close code of a fatal error. All others close with 1008 (policy violation).
_CLOSE_CODES = {"too-large": 1009, "shutdown": 1001, "full": 1013, "internal": 1011, "taken-over": 4001}


class Refusal(Exception):  # noqa: N818 (more often sent to a client than raised)
    """An error that is sent to the client. A fatal one closes the connection."""

    def __init__(self, code: str, message: str, fatal: bool = False) -> None:
        super().__init__(code)
        self.code, self.fatal = code, fatal
        # A quoted lone surrogate cannot be encoded as UTF-8.
        message = message.encode("utf-8", "backslashreplace").decode()
        self.message = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."

    @property
    def close_code(self) -> int:
        return _CLOSE_CODES.get(self.code, 1008)

    def made_fatal(self) -> Refusal:
        return Refusal(self.code, self.message, fatal=True)

    def text(self, accepted: int | None = None) -> str:
        """As JSON. `accepted` is the number of the last client message that the session accepted."""
        content = {"type": "error", "code": self.code, "message": self.message, "fatal": self.fatal}
        return json.dumps(content if accepted is None else content | {"accepted": accepted})


class StartMessage(msgspec.Struct, frozen=True, tag="start", forbid_unknown_fields=True):
    model: str | None = None
    policies: tuple[str, ...] | None = None
    segment: bool = True
    align: bool = False


class ResumeMessage(msgspec.Struct, frozen=True, tag="resume", forbid_unknown_fields=True):
    session: str
    received: int


class TextMessage(msgspec.Struct, frozen=True, tag="text", forbid_unknown_fields=True):
    seq: int
    text: str


class PolicyMessage(msgspec.Struct, frozen=True, tag="policy", forbid_unknown_fields=True):
    seq: int
    track: int
    policy: str


class EndMessage(msgspec.Struct, frozen=True, tag="end", forbid_unknown_fields=True):
    seq: int


class CloseMessage(msgspec.Struct, frozen=True, tag="close", forbid_unknown_fields=True):
    seq: int


class InvalidMessage(NamedTuple):
    """A JSON object that is not a valid message. Its `seq` counts if it is the expected one."""

    kind: str | None  # its type, if only the values of its fields are wrong
    seq: object
    refusal: Refusal


FirstMessage = StartMessage | ResumeMessage  # the first message of a connection
Message = FirstMessage | TextMessage | PolicyMessage | EndMessage | CloseMessage
_STRUCTS = (StartMessage, ResumeMessage, TextMessage, PolicyMessage, EndMessage, CloseMessage)
_FIELDS = {struct.__struct_config__.tag: struct.__struct_fields__ for struct in _STRUCTS}
FIRST_TYPES = ("start", "resume")
_DECODER: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class PolicyChange:
    """A track continues with another policy."""

    track: int
    policy: Policy


@dataclass(frozen=True)
class End:
    pass


@dataclass(frozen=True)
class Close:
    pass


Command = Text | PolicyChange | End | Close  # what a session computes


def decode(text: str) -> Message | InvalidMessage:
    """The message in a text frame. Raises Refusal if the text is not a JSON object."""
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _decode_leniently(text)


def _decode_leniently(text: str) -> Message | InvalidMessage:
    """A message that msgspec refuses. It is still valid if its only fault is half of a surrogate pair.

    JavaScript clients may cut text inside a character. Python's JSON parser accepts the halves.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal("bad-message", "expected a JSON object; this is not valid JSON") from None
    if not isinstance(found, dict):
        raise Refusal("bad-message", f"expected a JSON object, not a {type(found).__name__}")
    seq = found.get("seq")
    refusal = _unknown_name(found)
    if refusal is not None:
        return InvalidMessage(None, seq, refusal)
    try:
        message: Message = msgspec.convert(found, Message)
        return message
    except msgspec.ValidationError as error:
        return InvalidMessage(found["type"], seq, Refusal("bad-message", explain(found["type"], error)))


def _unknown_name(found: dict[str, Any]) -> Refusal | None:
    """Why the type or a field of a message is unknown, with the closest known name."""
    kind = found.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        hint = suggest(kind, map(str, _FIELDS)) if isinstance(kind, str) else f"; known: {', '.join(map(str, _FIELDS))}"
        return Refusal("bad-message", f"unknown message type {kind!r}{hint}")
    unknown = found.keys() - {"type", *_FIELDS[kind]}
    if not unknown:
        return None
    name = min(unknown)
    return Refusal("bad-message", f"{kind!r} has no field {name!r}{suggest(name, _FIELDS[kind])}")


def explain(what: str, error: msgspec.ValidationError) -> str:
    """The text of a validation error: which field, what was expected, what was received.

    >>> class Point(msgspec.Struct):
    ...     x: int
    >>> try:
    ...     msgspec.convert({"x": "1"}, Point)
    ... except msgspec.ValidationError as error:
    ...     print(explain("point", error))
    invalid 'point': x: expected int, got str
    """
    reason, _, path = str(error).replace("`", "").partition(" - at $.")
    reason = reason[:1].lower() + reason[1:]
    return f"invalid {what!r}: {path}: {reason}" if path else f"invalid {what!r}: {reason}"


def command(message: Message) -> Command:
    """The command in a message of a running session."""
    match message:
        case TextMessage(text=text):
            return Text(text)
        case PolicyMessage(track=track, policy=spec):
            return PolicyChange(track, safe_policy(spec))
        case EndMessage():
            return End()
        case _:
            return Close()


def safe_policy(spec: str) -> Policy:
    """The policy that a client names. Only built-in ones are allowed: a policy from a file would run code."""
    name = spec.strip().partition(":")[0]
    try:
        if len(spec) > _LONGEST_POLICY:
            raise UserError("expected a policy such as wait-k:3 or wait-k:3,c=0.25")
        plugins.check("policies", name)
        return policy(spec).decoding_policy()
    except UserError as error:
        raise Refusal("bad-policy", str(error)) from None
