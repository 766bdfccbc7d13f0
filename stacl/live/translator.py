"""A loaded model with its vocabularies: translates texts, batches and live streams. It does not import torch."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from stacl.decoding.batched import Sources, decode
from stacl.decoding.constraints.base import Constraint, Context, build
from stacl.decoding.engine import Engine
from stacl.decoding.hypothesis import Hypothesis
from stacl.decoding.options import BEST, GREEDY, Decoding
from stacl.decoding.rules import Rules
from stacl.live.assembler import WordAssembler
from stacl.live.sentence import Written
from stacl.live.session import Session, interpret
from stacl.policies.base import Policy, runs_code
from stacl.policies.base import policy as parse_policy
from stacl.policies.confidence import Confidence
from stacl.policies.wait_k import WaitK
from stacl.runs.manifest import Manifest
from stacl.support.errors import UserError
from stacl.text.languages import language
from stacl.text.passthrough import SourceSentence
from stacl.text.subwords import END, Subwords
from stacl.traces.trace import Trace

ADAPTIVE = "confidence:2-6"  # as good as wait-k:5 on dev sets at a lower latency (experiments/LOG.md)


class Translator:
    """A trained model with its vocabularies and languages. Sessions share it and hold all state."""

    def __init__(
        self,
        manifest: Manifest,
        engine: Engine[Any],
        source: Subwords,
        target: Subwords,
        fingerprint: str = "",
        policy: Policy | None = None,
    ) -> None:
        self.manifest = manifest
        self.fingerprint = fingerprint  # checksum of the weights, which identifies results
        self.engine = engine
        self.source_pieces, self.target_pieces = source, target
        self.source_language, self.target_language = language(manifest.source), language(manifest.target)
        self._given_policy = policy
        self._constraints: dict[tuple[str, ...] | None, tuple[Constraint, ...]] = {}

    @cached_property
    def policy(self) -> Policy:
        """The policy given on loading, or else the model's own, with a single k if it was trained for many.

        The model's own policy is never loaded from a Python file: a model may come from an untrusted source.
        """
        if self._given_policy is not None:
            return self._given_policy
        own = self.manifest.policy
        if runs_code(own):
            raise UserError(f"the model was trained under {own}, a file that is not part of it; name the policy to use")
        return parse_policy(own).decoding_policy()

    @cached_property
    def live_policy(self) -> Policy:
        """The default policy of live sessions: adaptive if the model was trained for all its lags."""
        if self._given_policy is not None or runs_code(self.manifest.policy):
            return self.policy
        trained, adaptive = parse_policy(self.manifest.policy), parse_policy(ADAPTIVE)
        assert isinstance(adaptive, Confidence)
        serves = (
            isinstance(trained, WaitK)
            and not trained.c
            and trained.unit == adaptive.unit
            and trained.k <= adaptive.least
            and trained.last_k >= adaptive.most
        )
        return adaptive.decoding_policy() if serves else self.policy

    def stream(
        self,
        policy: str | Policy | None = None,
        *,
        decoding: Decoding = GREEDY,
        segment: bool = False,
        on_trace: Callable[[Trace], None] | None = None,
    ) -> Session:
        """Open a live session. The default policy is `live_policy`. See stacl.Session."""
        chosen = self.live_policy if policy is None else parse_policy(policy)
        return Session(self, chosen, decoding, segment=segment, on_trace=on_trace)

    def interpret(
        self, chunks: AsyncIterable[str | bytes], policy: str | Policy | None = None, *, segment: bool = True
    ) -> AsyncIterator[Written]:
        """Translate arriving text asynchronously: `async for word in translator.interpret(chunks)`."""
        return interpret(self.stream(policy, segment=segment), chunks)

    def translate(self, text: str, policy: str | Policy = "full", *, decoding: Decoding = BEST) -> str:
        """Translate a complete text. It is split into sentences, and its lines are kept.

        By default each sentence is read completely and translated with a beam of 5.
        """
        if not isinstance(text, str):
            raise UserError(f"translate takes a string, not {type(text).__name__}")
        with self.stream(policy, decoding=decoding, segment=True) as session:
            lines = [[*session.feed(line), *session.end()] for line in text.splitlines()]
        return "\n".join(self.target_language.join([word.text for word in words]) for words in lines)

    def translate_lines(
        self,
        lines: Sequence[str],
        policy: str | Policy | None = None,
        *,
        decoding: Decoding = GREEDY,
        size: int = 64,
        progress: Callable[[int], None] | None = None,
    ) -> list[Trace]:
        """Translate many sentences, one per line, in batches of `size`.

        Words and delays are the same as in live sessions. The default policy is `self.policy`.
        """
        if isinstance(lines, str):  # otherwise each letter would be a sentence
            raise UserError("translate_lines takes a list of sentences, not a string; put a single one into a list")
        if size < 1:
            raise UserError(f"size, the number of lines in a batch, must be at least 1, not {size}")
        chosen = self.policy if policy is None else parse_policy(policy).decoding_policy()
        rules = self.rules(chosen, decoding)
        sources = [self._source_sentence_of(line) for line in lines]
        # Without words to translate, a line is empty or copied under every policy.
        traces = {
            i: self._trace(source, Hypothesis(), chosen) for i, source in enumerate(sources) if not source.translatable
        }
        order = sorted(set(range(len(lines))) - traces.keys(), key=lambda i: len(sources[i].pieces))
        for start in range(0, len(order), size):
            some = order[start : start + size]
            pieces = [np.array(sources[i].pieces, dtype=np.int64) for i in some]
            batch = Sources.of(pieces, self.source_pieces.ends_word, chosen.unit)
            for i, found in zip(some, decode(self.engine, batch, rules), strict=True):
                traces[i] = self._trace(sources[i], found, chosen)
            if progress:
                progress(start + len(some))
        return [traces[i] for i in range(len(lines))]

    def rules(self, policy: Policy, decoding: Decoding = GREEDY) -> Rules:
        """Return the decoding rules under a policy."""
        names = decoding.constraints
        if names not in self._constraints:
            context = Context(self.source_pieces, self.target_pieces, self.target_language)
            self._constraints[names] = build(context, names)
        return Rules(self.target_pieces.ends_word, policy, decoding, self._constraints[names])

    def source_sentence(self) -> SourceSentence:
        """Return an empty source sentence."""
        return SourceSentence(self.source_pieces, self.source_language)

    def _source_sentence_of(self, line: str) -> SourceSentence:
        source = self.source_sentence()
        for word in self.source_language.split(line):
            source.add(word)
        return source

    def _trace(self, source: SourceSentence, found: Hypothesis, policy: Policy) -> Trace:
        words = WordAssembler(source, self.target_pieces)
        decided = [*zip(found.pieces, found.reads, strict=True), (END, found.end_read)]
        written = [word for piece, read in decided for word in words.add(piece, read, policy.unit)] + words.finish()
        target, delays = tuple(text for text, _ in written), tuple(delay for _, delay in written)
        return Trace(len(source.words), delays, tuple(source.words), target, policy=str(policy))
