"""Words to subword pieces and back: SentencePiece BPE with white space as suffix.

BPE, because the pieces of a prefix never change when the sentence grows (unigram's can). White space as suffix, so
that the last piece of a word says itself that the word is finished, and the word can be shown at once.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from stacl.support.errors import UserError

PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3
SPACE = "\u2581"  # what SentencePiece writes for white space
_NO_TEXT = dict.fromkeys([*range(32), 127, 0xFFFD])  # control characters, and what stands for broken ones
_LONGEST_REMEMBERED = 32  # characters of a word
SMALLEST_SIZE = 300  # 256 bytes, the special pieces and a few letters


class Subwords:
    """A trained piece vocabulary.

    Encoding word by word equals encoding the whole sentence, which `tests/test_text.py` checks on real text.
    """

    def __init__(self, model: bytes, name: str = "vocabulary") -> None:
        self.model = model
        self._processor = _processor(model, name)
        self.pieces: list[str] = [self._processor.id_to_piece(i) for i in range(len(self))]
        self._in_bytes = frozenset(i for i in range(len(self)) if self._processor.is_byte(i))
        self.ends_word = np.array([piece.endswith(SPACE) for piece in self.pieces])  # [V] True: the last of a word
        self._remembered = lru_cache(maxsize=200_000)(self._encode_word)

    @classmethod
    def load(cls, path: Path) -> Subwords:
        if not path.is_file():
            raise UserError(f"no vocabulary {path}")
        return cls(path.read_bytes(), str(path))

    @classmethod
    def train(cls, sentences: Iterable[Sequence[str]], size: int, coverage: float = 1.0) -> Subwords:
        """Learn `size` pieces from sentences given as lists of words. The same sentences give the same pieces."""
        if size < SMALLEST_SIZE:
            raise UserError(f"a vocabulary of {size} pieces is too small; {SMALLEST_SIZE} is the least")
        trained = io.BytesIO()
        try:
            _sentencepiece().SentencePieceTrainer.train(
                sentence_iterator=(_safe(" ".join(words)) for words in sentences),
                model_writer=trained,
                model_type="bpe",
                vocab_size=size,
                character_coverage=coverage,
                treat_whitespace_as_suffix=True,
                normalization_rule_name="identity",  # languages.py normalises, in one place
                byte_fallback=True,  # no character is ever unknown: names, emoji and foreign scripts survive
                split_digits=True,
                pad_id=PAD,
                unk_id=UNKNOWN,
                bos_id=BEGIN,
                eos_id=END,
                num_threads=1,  # the order of merges must not depend on the machine
                max_sentence_length=100_000,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise UserError(_training_error(str(error), size)) from None
        return cls(trained.getvalue())

    def save(self, path: Path) -> None:
        path.write_bytes(self.model)

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, words: Sequence[str]) -> list[int]:
        """The pieces of a sentence, without an end symbol."""
        return [piece for word in words for piece in self.encode_word(word)]

    def encode_word(self, word: str) -> tuple[int, ...]:
        # Words that people write come again; long nonsense would only fill the memory.
        return self._remembered(word) if len(word) <= _LONGEST_REMEMBERED else self._encode_word(word)

    def _encode_word(self, word: str) -> tuple[int, ...]:
        return tuple(self._processor.encode(_safe(word)))

    def spells_in_bytes(self, word: str) -> bool:
        """Whether it has a character that has no piece of its own."""
        return not self._in_bytes.isdisjoint(self.encode_word(word))

    def decode_word(self, pieces: Sequence[int]) -> str:
        """The text of one word's pieces, without its white space, and without bytes that make no character."""
        return str(self._processor.decode(list(pieces))).translate(_NO_TEXT).strip(" ")

    def words(self, pieces: Sequence[int]) -> list[str]:
        """Whole words of a finished sentence; pieces after the last word's end make one more word."""
        found: list[str] = []
        start = 0
        for position, piece in enumerate(pieces, start=1):
            if self.ends_word[piece] or position == len(pieces):
                found.append(self.decode_word(pieces[start:position]))
                start = position
        return [word for word in found if word]


def units_of(pieces: np.ndarray, ends_word: np.ndarray, unit: str) -> np.ndarray:
    """For every piece the number of its unit, from 1: of the word that it belongs to, or of itself."""
    if unit == "piece":
        return np.arange(1, len(pieces) + 1)
    ended = np.cumsum(ends_word[pieces])
    return 1 + np.concatenate(([0], ended[:-1])) if len(pieces) else ended


def _safe(text: str) -> str:
    """SentencePiece's own white-space mark, met in a text, would end a word in its middle."""
    return text.replace(SPACE, "_")


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise UserError("sentencepiece is not installed; install stacl[serve], or stacl[train] to train") from None
    return sentencepiece


def _processor(model: bytes, name: str) -> Any:
    try:
        if model:  # SentencePiece takes nothing for a model without pieces
            return _sentencepiece().SentencePieceProcessor(model_proto=model)
    except (RuntimeError, TypeError):
        pass
    raise UserError(f"{name} is damaged, or is no SentencePiece model")


def _training_error(message: str, size: int) -> str:
    needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if needed:
        return (
            f"the training text has more characters than {size} pieces can name; "
            f"set text.vocabulary to more than {needed[1]}, or lower text.coverage"
        )
    limit = re.search(r"<= (\d+)", message)
    if limit and int(limit[1]) < SMALLEST_SIZE:
        return f"the training text is too small for a vocabulary: {limit[1]} pieces, and {SMALLEST_SIZE} are the least"
    if "Vocabulary size" in message or limit:
        most = f" at most {limit[1]}" if limit else " a smaller one"
        return f"the training text does not hold {size} different pieces; set text.vocabulary to{most}"
    return f"SentencePiece could not learn a vocabulary of {size} pieces: {message.splitlines()[-1]}"
