"""From sentences to a corpus: means, signatures, references, units."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stacl.metrics import _batch, _means, measure, reference_length
from stacl.support.errors import UserError
from stacl.text.languages import language
from stacl.traces.trace import Revision, Trace

SLOW = Trace(4, (4, 4, 4, 4), target=("a", "b", "c", "d"))
FAST = Trace(2, (1, 2), target=("e", "f"))


def test_plain_and_weighted_means() -> None:
    plain, weighted = measure([SLOW, FAST]), measure([SLOW, FAST], weighted=True)
    assert plain.scores["AL"] == pytest.approx((4 + 1) / 2)
    assert weighted.scores["AL"] == pytest.approx((4 * 4 + 2 * 1) / 6)
    assert "mean:sentences" in plain.signatures["AL"]
    assert "mean:source-weighted" in weighted.signatures["AL"]


def test_undefined_sentences_are_left_out_and_counted() -> None:
    report = measure([SLOW, FAST, Trace(3, ())])
    assert report.scores["AL"] == pytest.approx(2.5)
    assert "n:2|undefined:1" in report.signatures["AL"]
    assert report.scores["YAAL"] == pytest.approx(1)
    assert "n:1|undefined:2" in report.signatures["YAAL"]


def test_no_read_at_all_has_no_consecutive_wait() -> None:
    report = measure([Trace(3, (0, 0, 0))])
    assert report.scores["CW"] is None
    assert "n:0|undefined:1" in report.signatures["CW"]
    assert report.scores["AP"] == 0


def test_whose_length_is_in_the_signature() -> None:
    with_reference = measure([FAST], [["x y z"]])
    assert with_reference.scores["AL_ref"] == pytest.approx((1 + 2 - 2 / 3) / 2)
    assert "length:reference" in with_reference.signatures["AL_ref"]
    assert "length:longer" in with_reference.signatures["LAAL"]
    without = measure([FAST])
    assert "length:hypothesis" in without.signatures["LAAL"]
    assert "AL_ref" not in without.scores


def test_a_reference_in_pieces_needs_the_model() -> None:
    """Without a subword model its length is unknown: nothing is reported that would need it."""
    trace = Trace(2, (1, 2), target=("He", "llo▁"), unit="piece")
    report = measure([trace], [["Hello"]])
    assert "AL_ref" not in report.scores
    assert "length:hypothesis" in report.signatures["LAAL"]
    assert report.scores["chrF"] == pytest.approx(100)


def test_references_that_the_traces_carry() -> None:
    carried = [Trace(2, (1, 2), target=("e", "f"), reference="e f g")]
    assert measure(carried).scores == measure([FAST], [["e f g"]]).scores


def test_first_reference_gives_the_length() -> None:
    assert measure([FAST], [["x"], ["x y z"]]).scores["AL_ref"] == pytest.approx((1 + 2 - 2) / 2)


def test_units() -> None:
    chinese = Trace(2, (1, 2), target=("你好", "吗"))
    words, chars = measure([chinese], [["你好 吗"]]), measure([chinese], [["你好 吗"]], unit="char")
    assert words.scores["AL"] == pytest.approx(1)
    assert chars.scores["AL"] == pytest.approx((1 + (1 - 2 / 3) + (2 - 4 / 3)) / 3)
    assert chars.signatures["AL"].startswith("unit:char")
    assert chars.scores["AL_ref"] == chars.scores["AL"]
    assert reference_length("你好 吗", "char") == 3


def test_one_corpus_one_unit() -> None:
    with pytest.raises(UserError, match="sentence 2 has unit 'char', but those before it have 'word'"):
        measure([FAST, Trace(1, (1,), unit="char")])


def test_a_path_cannot_be_counted_in_characters() -> None:
    with pytest.raises(UserError, match="must hold its target words"):
        measure([Trace(1, (1,))], unit="char")


@pytest.mark.parametrize("lines", [["x"], ["x", "y", "z"]])
def test_unequal_line_counts(lines: list[str]) -> None:
    with pytest.raises(UserError, match=rf"ref.en has {len(lines)} lines, but there are 2 sentences to score; line"):
        measure([SLOW, FAST], {"ref.en": lines})


def test_second_reference_of_other_length() -> None:
    with pytest.raises(UserError, match="reference 2 has 1 lines, but there are 2 sentences"):
        measure(iter([SLOW, FAST]), [["x", "y"], ["x"]])


def test_nothing_to_score() -> None:
    with pytest.raises(UserError, match="no sentence"):
        measure([])


def test_a_path_without_words_has_no_quality() -> None:
    assert "BLEU" not in measure([Trace(2, (1, 2))], [["e f"]]).scores
    assert measure([Trace(2, (1, 2))], [["e f"]], hypotheses=["e f"]).scores["chrF"] == pytest.approx(100)


def test_a_system_that_says_nothing_has_bleu_zero() -> None:
    assert measure([Trace(2, ())], [["e f"]]).scores["BLEU"] == 0


def test_erasure() -> None:
    flicker = Trace.from_revisions("xyz", [Revision(1, 0, ("a", "b")), Revision(3, 1, ("c", "d", "e"))])
    assert measure([flicker]).scores["NE"] == pytest.approx(1 / 4)
    assert "NE" not in measure([FAST]).scores


def test_speech_logs_have_no_token_delay() -> None:
    speech = measure([Trace(4000, (1000, 4000), target=("a", "b"), unit="ms")])
    assert "ATD" not in speech.scores
    assert speech.scores["AL"] == pytest.approx((1000 + 4000 - 2000) / 2)


def test_intervals_and_rows() -> None:
    rows = []
    report = measure([SLOW, FAST] * 20, samples=100, on_sentence=lambda number, row: rows.append((number, row)))
    low, high = report.intervals["AL"]
    assert 1 < low < 2.5 < high < 4
    # Half of the sentences have no YAAL; resampling them changes nothing.
    assert report.intervals["YAAL"] == (1, 1)
    assert [number for number, _ in rows] == list(range(40))
    assert rows[0][1]["AL"] == 4
    assert rows[0][1]["YAAL"] is None


def test_large_and_mixed_corpora_are_scored_as_their_sentences_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queued, flushed, with empty outputs and other lengths in between: the same as one by one."""
    traces, references = [], []
    for n in range(300):
        source, target = 1 + n % 13, n * 7 % 17
        traces.append(Trace(source, tuple(sorted((n * t) % (source + 1) for t in range(target)))))
        references.append(" ".join(["x"] * (n * 5 % 11)))
    monkeypatch.setattr("stacl.metrics._means.CELLS", 100)
    for columns in (None, [references]):
        for weighted in (False, True):
            fast = measure(traces, columns, weighted=weighted)
            slow = measure(traces, columns, weighted=weighted, keep=True)
            assert fast.signatures == slow.signatures
            assert fast.scores == pytest.approx(slow.scores)
    assert "undefined:" in fast.signatures["AL_ref"]


def test_a_log_that_lacks_some_references() -> None:
    """A missing one would count as an empty one, and make good output look bad. An empty line needs none."""
    with_one = Trace(2, (1, 2), target=("e", "f"), reference="e f")
    for traces in ([with_one, Trace(0, ())], [Trace(0, ()), Trace(0, ()), with_one]):
        assert measure(traces).scores["BLEU"] == measure([with_one]).scores["BLEU"]
    assert measure([Trace(0, ())]).sentences == 1
    with pytest.raises(UserError, match="sentence 2 has no reference, but those before it have one"):
        measure([with_one, FAST])
    with pytest.raises(UserError, match="sentence 2 has a reference, but those before it have none"):
        measure([FAST, with_one])


@pytest.mark.parametrize("lines", [["e f e f", ""], ["", "e f e f"]])
@pytest.mark.parametrize("keep", [False, True])
def test_an_empty_reference_has_no_length_wherever_it_comes_from(lines: list[str], keep: bool) -> None:
    path = Trace(2, (1, 2), target=("e", "f"))
    paths = [path, path]
    given = measure(paths, [lines], keep=keep)
    carried = measure([replace(path, reference=line) for line in lines], keep=keep)
    assert (carried.as_dict(), carried.references) == (given.as_dict(), given.references)
    assert given.scores["AL_ref"] == measure([replace(path, reference="e f e f")]).scores["AL_ref"]
    assert "n:1|undefined:1|" in given.signatures["AL_ref"]
    # A log whose references are all empty has none; files of empty lines are references all the same.
    assert measure([replace(one, reference="") for one in paths], keep=keep) == measure(paths, keep=keep)
    assert "BLEU" in measure(paths, [["", ""]], keep=keep).scores


def test_a_long_sentence_among_short_ones_keeps_the_batches_small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def recorded(queue: _means.Queue) -> _batch.PathBatch:
        sizes.append(len(queue.sentences) * max(len(one.delays) for one in queue.sentences))
        return batch(queue)

    batch = _means.Queue.batch
    monkeypatch.setattr(_means, "CELLS", 100)
    monkeypatch.setattr(_means.Queue, "batch", recorded)
    traces = [Trace(90, tuple(range(1, length + 1))) for length in (*[5] * 15, 90, *[5] * 30)]
    assert measure(traces).sentences == 46
    assert max(sizes) <= 100


def test_texts_given_beside_a_log_are_judged_by_the_references_that_it_carries() -> None:
    path = Trace(2, (1, 2), reference="e f g h")
    found = measure([path], hypotheses=["e f g h"])
    assert found.scores["BLEU"] == pytest.approx(100)
    assert found.scores["AL_ref"] is not None
    nothing_said = measure([path, path], [["e f g h", "e f g h"]], hypotheses=["e f g h", ""])
    assert nothing_said.wordless == 0
    assert 0 < (nothing_said.scores["BLEU"] or 0) < 100
    assert measure([path, path]).wordless == 1


def test_a_reference_without_spaces_has_no_length_in_words() -> None:
    trace = Trace(3, (1, 2, 3), target=("两个", "孩子", "踢足球"), reference="两个孩子踢足球")
    found = measure([trace], tokenize="zh")
    assert found.scores["BLEU"] == pytest.approx(100, abs=1)
    assert not {"AL_ref", "AP_ref"} & found.scores.keys()
    assert measure([trace], unit="char").scores["AL_ref"] is not None
    assert reference_length("“Yes!”", "word") == 1
    assert reference_length("谢谢", "word", language("zh").split) == 1


def test_no_speaker_no_clock() -> None:
    at_once = Trace(2, (1, 2), read_times=(0.0, 0.0), write_times=(0.1, 0.3))
    clocked = {name: score for name, score in measure([at_once]).scores.items() if name.endswith("_CA")}
    assert not [name for name, score in clocked.items() if score is not None and "Offset" not in name]
