"""The public face: load a model, translate, stream. What decodes needs no torch; loading trained weights does."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stacl import config
from stacl.decoding.batched import Sources, decode
from stacl.decoding.beam import check
from stacl.decoding.constraints.numbers import Numbers
from stacl.decoding.engine import Engine, TorchEngine
from stacl.decoding.rules import Hypothesis, Rules
from stacl.engines import onnx
from stacl.live.sentence import Written
from stacl.live.session import Session, interpret
from stacl.policies.base import Policy, policy, runs_code
from stacl.runs import pretrained
from stacl.support import plugins
from stacl.support.errors import UserError, suggest
from stacl.text.languages import language
from stacl.text.passthrough import Heard
from stacl.text.subwords import Subwords
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.models.base import Model

ENGINES = ("auto", "torch", "fast")


class Translator:
    """A trained model with its vocabularies and languages."""

    def __init__(
        self,
        settings: config.Config,
        engine: Engine,
        source: Subwords,
        target: Subwords,
        fingerprint: str = "",
        reading: Policy | None = None,
    ) -> None:
        self.settings = settings
        self.fingerprint = fingerprint  # the checksum of the weights, for those who keep results
        self.engine = engine
        self.source_pieces, self.target_pieces = source, target
        self.source_language = language(settings.data.source)
        self.target_language = language(settings.data.target)
        self._reading = reading
        self.numbers: Numbers | None = Numbers(source, target, myriads=not self.target_language.spaced)  # None: no rule

    @property
    def policy(self) -> Policy:
        """Where none is named: the one that was given on loading, or the model's own.

        Its own is not made before somebody wants it, and never from a file: a model may come from a stranger.
        """
        if self._reading is None:
            own = self.settings.policy
            if runs_code(own):
                raise UserError(f"the model was trained under {own}, which is not part of it; name the policy to use")
            self._reading = policy(own).settled()
        return self._reading

    def stream(
        self,
        reading: str | Policy | None = None,
        *,
        beam: int = 1,
        ahead: int = 0,
        early_end: bool = False,
        segment: bool = False,
        on_trace: Callable[[Trace], None] | None = None,
    ) -> Session:
        """A live session, under the model's own policy unless another is given. See stacl.live.session.Session."""
        return Session(
            self,
            self._policy(reading),
            beam=beam,
            ahead=ahead,
            early_end=early_end,
            segment=segment,
            on_trace=on_trace,
        )

    def interpret(
        self, chunks: AsyncIterable[str | bytes], reading: str | Policy | None = None, *, segment: bool = True
    ) -> AsyncIterator[Written]:
        """`async for word in translator.interpret(chunks)`: text as it arrives in, words out as they may be said."""
        return interpret(self.stream(reading, segment=segment), chunks)

    def translate(self, text: str, reading: str | Policy | None = None, *, beam: int = 1, ahead: int = 0) -> str:
        """The translation of a text, cut into sentences and said as in a live session; a line stays a line."""
        with self.stream(reading, beam=beam, ahead=ahead, segment=True) as session:
            lines = [[*session.feed(line), *session.end()] for line in text.splitlines()]
        return "\n".join(self.target_language.join([word.text for word in said]) for said in lines)

    def translate_lines(
        self,
        lines: Sequence[str],
        reading: str | Policy | None = None,
        *,
        beam: int = 1,
        ahead: int = 0,
        early_end: bool = False,
        size: int = 64,
        progress: Callable[[int], None] | None = None,
    ) -> list[Trace]:
        """Many sentences, each one line, in batches: the words are those of live sessions."""
        if isinstance(lines, str):  # whose letters would be taken for sentences
            raise UserError("translate_lines takes a list of sentences; put a single one into a list")
        if size < 1:
            raise UserError(f"size says how many lines are decoded together: at least 1, not {size}")
        check(beam, ahead)
        chosen = self._policy(reading)
        rules = self.rules(chosen, early_end)
        heard, pieces = zip(*map(self._heard, lines), strict=True) if lines else ((), ())
        # Nothing that could be translated: an empty line stays one under every policy.
        traces = {
            i: self._trace(heard[i], pieces[i], Hypothesis(), chosen)
            for i in range(len(lines))
            if not heard[i].translatable
        }
        order = sorted(set(range(len(lines))) - traces.keys(), key=lambda i: len(pieces[i]))
        for start in range(0, len(order), size):
            some = order[start : start + size]
            sources = Sources.of([pieces[i] for i in some], self.source_pieces.ends_word, chosen.unit)
            for i, found in zip(some, decode(self.engine, sources, rules, beam, ahead), strict=True):
                traces[i] = self._trace(heard[i], pieces[i], found, chosen)
            if progress:
                progress(start + len(some))
        return [traces[i] for i in range(len(lines))]

    def _policy(self, reading: str | Policy | None) -> Policy:
        return self.policy if reading is None else policy(reading).settled()

    def rules(self, reading: Policy, early_end: bool = False) -> Rules:
        """What may be said, under a policy."""
        return Rules(self.target_pieces.ends_word, reading, early_end, self.numbers, self.source_pieces.words)

    def listen(self) -> Heard:
        """A sentence of which nothing was heard yet."""
        return Heard(self.source_pieces, self.source_language)

    def _heard(self, line: str) -> tuple[Heard, np.ndarray]:
        """A whole line, and the pieces of it that the model gets."""
        heard = self.listen()
        given = [text for word in self.source_language.split(line) if (text := heard.add(word))]
        return heard, np.array(self.source_pieces.encode(given), dtype=np.int64)

    def _trace(self, heard: Heard, pieces: np.ndarray, found: Hypothesis, chosen: Policy) -> Trace:
        target: list[str] = []
        delays: list[int] = []
        start = 0
        for position, piece in enumerate(found.pieces, start=1):
            if self.target_pieces.ends_word[piece] or position == len(found.pieces):
                text = self.target_pieces.decode_word(found.pieces[start:position])
                start = position
                if text:
                    delay = self._delay(found.reads[position - 1], heard, pieces, chosen.unit)
                    target += [*heard.due(delay, len(target) + 1), text]
                    delays += [delay] * (len(target) - len(delays))
        target += heard.rest(target[-1] if target else "")
        delays += [len(heard.words)] * (len(target) - len(delays))
        return Trace(len(heard.words), tuple(delays), tuple(heard.words), tuple(target), policy=str(chosen))

    def _delay(self, read: int, heard: Heard, pieces: np.ndarray, unit: str) -> int:
        """Source words heard when so many units were read: a word that was begun has told something already."""
        ends = self.source_pieces.ends_word[pieces]
        if unit == "word" or not read:
            return heard.delay(read, ended=read > ends.sum())
        return heard.delay(min(1 + int(ends[: read - 1].sum()), int(ends.sum())), ended=read > len(pieces))


def load(name: str | Path, engine: str = "auto", reading: str | Policy | None = None) -> Translator:
    """A translator from a shipped model (`de-en`), a run folder, or an exported one. Only a run folder needs torch.

    `engine`: `torch` takes the trained weights, `fast` the exported ones, `auto` what the folder has, trained first.
    `reading`: the policy where none is named; the model's own if None (k = 5 of one that was trained for every k).
    """
    folder = pretrained.find(name)
    if engine not in ENGINES:
        raise UserError(f"no engine is called {engine!r}{suggest(engine, ENGINES)}")
    chosen = None if reading is None else policy(reading).settled()
    settings = config.load(folder / "config.toml")
    source, target = load_vocabularies(folder)
    weights, exported = folder / "model.safetensors", folder / onnx.FOLDER
    if engine == "fast" or (engine == "auto" and exported.is_dir() and not weights.exists()):
        runner = onnx.FastEngine.load(exported)
        return Translator(settings, runner, source, target, runner.fingerprint, chosen)

    from stacl.runs import checkpoint

    model = build_model(settings, source, target)
    tensors, facts = checkpoint.load_model(weights)
    checkpoint.load_weights(model, tensors, str(folder))
    return Translator(settings, TorchEngine(model), source, target, facts["checksum"], chosen)


def build_model(settings: config.Config, source: Subwords, target: Subwords) -> Model:
    from stacl.models.base import Model

    kind = plugins.find("models", settings.model.kind, Model)  # type: ignore[type-abstract]
    return kind.build(settings.model.resolved(), len(source), len(target), settings.text.shared)


def load_vocabularies(folder: Path) -> tuple[Subwords, Subwords]:
    source = Subwords.load(folder / "vocabulary" / "source.model")
    other, own = folder / "vocabulary" / "target.model", folder / "config.toml"
    if other.exists():
        return source, Subwords.load(other)
    if own.exists() and not config.load(own).text.shared:
        raise UserError(f"no vocabulary {other}, though text.shared is false: the target has pieces of its own")
    return source, source
