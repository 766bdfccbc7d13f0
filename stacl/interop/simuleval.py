"""A SimulEval agent, so that SimulEval can score stacl in the same way as other systems.

  simuleval --agent-class stacl.interop.simuleval.StaclAgent --model RUN --policy wait-k:3 \\
            --source test.de --target test.en
  simuleval --agent stacl/interop/simuleval.py --model RUN --policy wait-k:3,c=0.25 --beam 5 ...

SimulEval passes one source word at a time and calls the agent once after each. The agent therefore writes all words
that are allowed at that moment in one action. Otherwise a policy that writes two words for one (catch-up) would be
measured one word late. SimulEval reports the end together with the last word, so the translation is finished in the
same action. For Chinese output use `--eval-latency-unit char`.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from stacl import api
from stacl.decoding.options import Decoding
from stacl.live.sentence import Written
from stacl.live.session import Session
from stacl.policies.base import policy
from stacl.support.errors import UserError

try:
    from simuleval.agents import AgentStates, ReadAction, TextToTextAgent, WriteAction
    from simuleval.utils import entrypoint
except ImportError as error:
    # The module can be imported without SimulEval, but agents cannot be created.
    _missing = str(error)
    AgentStates = TextToTextAgent = object

    def entrypoint(kind: type) -> type:
        return kind
else:
    _missing = ""


class SessionStates(AgentStates):  # type: ignore[misc]
    """SimulEval's state of a sentence, with a live session."""

    def reset(self) -> None:
        super().reset()
        self.session: Session | None = None
        self.given = 0  # source words that the session has read


@entrypoint
class StaclAgent(TextToTextAgent):  # type: ignore[misc]
    """A trained model that translates while SimulEval provides the source."""

    def __init__(self, args: argparse.Namespace) -> None:
        if _missing:
            raise UserError(f"SimulEval is not installed ({_missing}); the agent requires simuleval 1.1.4")
        self.decoding = Decoding(beam=args.beam, ahead=args.ahead)
        self.translator = api.load(args.model)
        self.reading_policy = policy(args.policy).decoding_policy() if args.policy else self.translator.policy
        super().__init__(args)

    @staticmethod
    def add_args(parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add("--model", required=True, metavar="RUN", help="a shipped model or a run folder")
        add("--policy", metavar="P", help="reading policy, e.g. wait-k:3 (default: the model's own)")
        add("--beam", type=int, default=1, metavar="N", help="beam once the source has ended (default 1: greedy)")
        add(
            "--ahead",
            type=int,
            default=0,
            metavar="N",
            help="beam look-ahead while the source is open, in pieces (default 0)",
        )

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> StaclAgent:
        """Create an agent for SimulEval's command line. A user's mistake is printed as one line, not a traceback."""
        try:
            return cls(args)
        except UserError as error:
            print(f"stacl agent: {error}", file=sys.stderr)
            raise SystemExit(2) from None

    def build_states(self) -> SessionStates:
        return SessionStates()

    def policy(self, states: SessionStates | None = None) -> Any:
        """Write all words that are allowed after the new source words. A pipeline passes the states."""
        states = states or self.states
        if states.session is None:
            states.session = self.translator.stream(self.reading_policy, decoding=self.decoding)
        written: list[Written] = []
        for word in states.source[states.given :]:
            written += states.session.feed(word + " ")
        states.given = len(states.source)
        if states.source_finished:
            written += states.session.close()
        elif not written:
            return ReadAction()
        text = self.translator.target_language.join(word.text for word in written)
        return WriteAction(text, finished=states.source_finished)
