"""Words to subword pieces and back: SentencePiece BPE with white space as suffix.

BPE, because the pieces of a prefix never change when the sentence grows. With a unigram model they can. White space is
a suffix, so the last piece of a word marks its end and the word can be shown at once.
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
SPACE = "\u2581"  # SentencePiece's symbol for white space
_NO_TEXT = dict.fromkeys([*range(32), 127, 0xFFFD])  # control characters and the replacement character
_LONGEST_CACHED = 32  # characters: real words recur, and long random strings would only fill the cache
SMALLEST_SIZE = 300  # 256 bytes, the special pieces and a few letters


class Subwords:
    """A trained piece vocabulary.

    Encoding word by word equals encoding the whole sentence, which `tests/text/test_subwords.py` checks on real text.
    """

    def __init__(self, model: bytes, name: str = "vocabulary") -> None:
        self.model = model
        self._processor = _processor(model, name)
        self.pieces: list[str] = [self._processor.id_to_piece(i) for i in range(len(self))]
        self._in_bytes = frozenset(i for i in range(len(self)) if self._processor.is_byte(i))
        self.ends_word = np.array([piece.endswith(SPACE) for piece in self.pieces])  # [V] True: last piece of a word
        self._cached = lru_cache(maxsize=200_000)(self._encode_word)

    @classmethod
    def load(cls, path: Path) -> Subwords:
        if not path.is_file():
            raise UserError(f"the vocabulary {path} does not exist")
        return cls(path.read_bytes(), str(path))

    @classmethod
    def train(cls, sentences: Iterable[Sequence[str]], size: int, coverage: float = 1.0) -> Subwords:
        """Learn `size` pieces from sentences, given as lists of words. The result is deterministic."""
        if size < SMALLEST_SIZE:
            raise UserError(f"a vocabulary of {size} pieces is too small: it needs at least {SMALLEST_SIZE}")
        trained = io.BytesIO()
        try:
            _sentencepiece().SentencePieceTrainer.train(
                sentence_iterator=(_safe(" ".join(words)) for words in sentences),
                model_writer=trained,
                model_type="bpe",
                vocab_size=size,
                character_coverage=coverage,
                treat_whitespace_as_suffix=True,
                normalization_rule_name="identity",  # the splitters normalise
                byte_fallback=True,  # no character is unknown: names, emoji and other scripts are kept
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
        """Return the pieces of a sentence, without an end symbol."""
        return [piece for word in words for piece in self.encode_word(word)]

    def encode_word(self, word: str) -> tuple[int, ...]:
        return self._cached(word) if len(word) <= _LONGEST_CACHED else self._encode_word(word)

    def _encode_word(self, word: str) -> tuple[int, ...]:
        return tuple(self._processor.encode(_safe(word)))

    def spells_in_bytes(self, word: str) -> bool:
        """Whether the vocabulary has no piece for one of its characters, and spells it in bytes."""
        return not self._in_bytes.isdisjoint(self.encode_word(word))

    def decode_word(self, pieces: Sequence[int]) -> str:
        """Return the text of one word's pieces, without white space and without bytes that form no character."""
        return str(self._processor.decode(list(pieces))).translate(_NO_TEXT).strip(" ")

    def words(self, pieces: Sequence[int]) -> list[str]:
        """Return the words of a finished sentence. Pieces after the last word end form one more word."""
        found: list[str] = []
        start = 0
        for position, piece in enumerate(pieces, start=1):
            if self.ends_word[piece] or position == len(pieces):
                found.append(self.decode_word(pieces[start:position]))
                start = position
        return [word for word in found if word]


def units_of(pieces: np.ndarray, ends_word: np.ndarray, unit: str) -> np.ndarray:
    """Return the number of the unit of each piece, from 1: its word, or the piece itself if `unit` is "piece"."""
    if unit == "piece":
        return np.arange(1, len(pieces) + 1)
    ended = np.cumsum(ends_word[pieces])
    return 1 + np.concatenate(([0], ended[:-1])) if len(pieces) else ended


def _safe(text: str) -> str:
    """Replace SentencePiece's white-space symbol, which would end a word in the middle."""
    return text.replace(SPACE, "_")


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise UserError(
            "sentencepiece is not installed: pip install 'stacl[serve]', or 'stacl[train]' to train"
        ) from None
    return sentencepiece


def _processor(model: bytes, name: str) -> Any:
    try:
        if model:  # SentencePiece accepts empty bytes as a model without pieces
            return _sentencepiece().SentencePieceProcessor(model_proto=model)
    except (RuntimeError, TypeError):
        pass
    raise UserError(f"{name} is damaged or not a SentencePiece model")


def _training_error(message: str, size: int) -> str:
    needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", message)
    if needed:
        return (
            f"the training text has more different characters than {size} pieces can cover; "
            f"set text.vocabulary to more than {needed[1]}, or lower text.coverage"
        )
    limit = re.search(r"<= (\d+)", message)
    if limit and int(limit[1]) < SMALLEST_SIZE:
        return f"the training text is too small: it gives {limit[1]} pieces, and a vocabulary needs {SMALLEST_SIZE}"
    if "Vocabulary size" in message or limit:
        most = f" at most {limit[1]}" if limit else " a smaller number"
        return f"the training text is too small for {size} pieces; set text.vocabulary to{most}"
    return f"SentencePiece could not learn a vocabulary of {size} pieces: {message.splitlines()[-1]}"
