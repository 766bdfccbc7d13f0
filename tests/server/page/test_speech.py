"""Speech: what a recogniser guesses is sent once, in order, and to its end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.server.page.conftest import Visitor
from tests.server.page.steps import SENTENCE, connected, heard, wait_for_words, wait_until_said

RECOGNISER = """
delete window.SpeechRecognition;
window.webkitSpeechRecognition = class {
  start() { window.recogniser = this; }
  stop() { this.onend?.(); }
  abort() { this.onend?.(); }
};
window.recognise = (text, isFinal) => {
  const result = Object.assign([{ transcript: text }], { isFinal });
  window.recogniser.onresult?.({ resultIndex: 0, results: [result] });
};
"""


def test_speech_is_sent_once_it_is_settled(visit: Visitor) -> None:
    page = connected(visit(prepare=lambda page: page.add_init_script(RECOGNISER)))
    page.get_by_role("button", name="Speak", exact=True).click()
    assert page.evaluate("recogniser.lang") == "de-DE"
    for guess in ("Ein", "Ein Mann", "Ein Mann schlief", "Ein Mann schläft ihr"):
        page.evaluate("guess => recognise(guess, false)", guess)
    wait_for_words(page, "#heard .now", 1)  # the others may still change
    page.evaluate("guess => recognise(guess, true)", SENTENCE.rstrip("."))
    wait_until_said(page)
    assert heard(page) == SENTENCE.rstrip(".").split()
    page.evaluate("recogniser.onerror({ error: 'not-allowed' })")
    expect(page.get_by_role("alert")).to_contain_text("not allowed to use the microphone")
    expect(page.get_by_role("button", name="Speak", exact=True)).to_have_attribute("aria-pressed", "false")


def test_speech_that_comes_after_play_is_not_mixed_in(visit: Visitor) -> None:
    prepare: dict[str, Any] = {"prepare": lambda page: page.add_init_script(RECOGNISER)}
    page = connected(visit("?pace=2400&example=The green sofa", **prepare))
    page.get_by_role("button", name="Speak", exact=True).click()
    page.click("#play")
    page.evaluate("recognise('Guten Tag', true)")
    wait_until_said(page)
    assert heard(page) == ["Ein", "Mann", "schläft", "auf", "einem", "grünen", "Sofa."]


# Everything that happens to a recogniser, as [kind, argument ...]; what was sent, and what the page waited for.
LISTEN = """async ({ spaced, story }) => {
  const { Speech } = await import("/speech.js");
  const timers = [];
  globalThis.setTimeout = (callback, wait) => timers.push({ callback, wait });
  let sent = "";
  const speech = new Speech({ send: (text) => (sent += text), changed() {}, failed() {} });
  const starts = [];
  const start = webkitSpeechRecognition.prototype.start;
  webkitSpeechRecognition.prototype.start = function () { starts.push(timers.length); start.call(this); };
  speech.start("en-US", spaced);
  const happen = {
    results: (...all) => recogniser.onresult?.({ resultIndex: 0, results: all.map(([transcript, isFinal]) =>
      Object.assign([{ transcript }], { isFinal: isFinal ?? false })) }),
    error: (error) => recogniser.onerror({ error }),
    end: () => recogniser.onend?.(),
    timer: () => timers.at(-1).callback(),
    stop: () => speech.stop(),
    cancel: () => speech.cancel(),
  };
  for (const [kind, ...rest] of story) happen[kind](...rest);
  return { sent, starts: starts.length, waits: timers.map(({ wait }) => wait) };
}"""


@pytest.fixture
def listen(visit: Visitor) -> Callable[..., dict[str, Any]]:
    """What comes of a story: `listen(("results", ["Ein"]), ("end",))`."""

    def listening(*story: tuple[Any, ...], spaced: bool = True) -> dict[str, Any]:
        page = connected(visit(prepare=lambda page: page.add_init_script(RECOGNISER)))
        return page.evaluate(LISTEN, {"spaced": spaced, "story": story})

    return listening


def test_what_was_recognised_is_sent_once_however_it_is_cut(visit: Visitor) -> None:
    """A recogniser may cut what it has heard into more or fewer words than before."""
    heard = {
        "ich bin ein und zwanzig/… jahre/… alt": ("Ich bin 21 Jahre alt", "ich bin ein und zwanzig Jahre alt \n"),
        "das haus boot/… liegt im/… hafen": ("Das Hausboot liegt im Hafen", "das haus boot liegt im Hafen \n"),
        "zusammen arbeit/zusammenarbeit ist gut/… da": ("Zusammen Arbeit ist gut da", "zusammenarbeit ist gut da \n"),
        "ja ja/… ja/… ja": ("Ja, ja, ja, ja!", "ja ja ja, ja! \n"),
    }
    take = """([guesses, final]) => import("/speech.js").then(({ Settled }) => {
      const settled = new Settled(true);
      return guesses.map((guess) => settled.take([], [guess])).join("") + settled.take([final], []);
    })"""
    page = connected(visit())
    for guesses, (final, expected) in heard.items():
        grown = list(itertools.accumulate(guesses.split("/"), lambda before, now: now.replace("…", before)))
        assert page.evaluate(take, [grown, final]) == expected


MOTHER = "I have talked to my mother yesterday"


def test_several_results_at_once_are_one_guess(listen: Callable[..., dict[str, Any]]) -> None:
    """A recogniser tells what it is sure of and what it is not as two results, and moves words between them."""
    said = listen(
        ("results", ["I have"]),
        ("results", ["I have"], [" talked to my mother"]),
        ("results", ["I have"], [" talked to my mother yesterday"]),
        ("results", ["I have talked to"], [" my mother yesterday"]),
        ("results", [MOTHER, True]),
        ("results", [MOTHER, True], [" she is fine"]),
        ("results", [MOTHER, True], [" she is fine", True]),
    )
    assert said["sent"] == f"{MOTHER} \nshe is fine \n"


def test_signs_without_spaces_are_one_guess_too(listen: Callable[..., dict[str, Any]]) -> None:
    said = listen(
        ("results", ["我昨"]),
        ("results", ["我昨"], ["天跟"]),
        ("results", ["我昨天"], ["跟妈妈"]),
        ("results", ["我昨天跟妈妈", True], ["她很好"]),
        ("results", ["我昨天跟妈妈", True], ["她很好", True]),
        spaced=False,
    )
    assert said["sent"] == "我昨天跟妈妈\n她很好\n"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_final_result_that_is_shorter_than_what_was_sent(
    listen: Callable[..., dict[str, Any]], at_once: bool
) -> None:
    """The rest comes again, with the final result or after it, and is not sent twice."""
    longer = f"{MOTHER} she is"
    said = listen(
        ("results", [longer]),
        ("results", [f"{longer} fine"]),
        ("results", [f"{longer} fine now"]),
        *([] if at_once else [("results", [MOTHER, True])]),
        ("results", [MOTHER, True], [" she"]),
        ("results", [MOTHER, True], [" she is fine now", True]),
    )
    assert said["sent"] == f"{MOTHER} she is \nfine now \n"


def test_a_guess_that_is_shorter_for_a_while(listen: Callable[..., dict[str, Any]]) -> None:
    said = listen(
        ("results", [MOTHER]),
        ("results", [MOTHER], [" evening"]),
        ("results", ["I have talked"]),
        ("results",),
        ("results", [MOTHER, True]),
    )
    assert said["sent"] == f"{MOTHER} \n"


def test_what_is_not_final_at_the_end_is_sent(listen: Callable[..., dict[str, Any]]) -> None:
    guesses = [("results", ["Guten Morgen ich bin"]), ("results", ["Guten Morgen ich bin der neue"])]
    said = listen(*guesses, ("end",), ("results", ["und wer bist du", True]), ("end",))
    assert said == {"sent": "Guten Morgen ich bin der neue \nund wer bist du \n", "starts": 3, "waits": []}
    assert listen(*guesses, ("stop",))["sent"] == "Guten Morgen ich bin der neue \n"
    assert listen(*guesses, ("results",), ("end",))["sent"] == "Guten Morgen ich \n"  # and no more is guessed
    assert listen(("end",))["sent"] == ""  # silence keeps no session awake


def test_what_is_not_final_when_something_else_has_the_word_is_not_sent(listen: Callable[..., dict[str, Any]]) -> None:
    guesses = [("results", ["Guten Morgen ich bin"]), ("results", ["Guten Morgen ich bin der neue"])]
    assert listen(*guesses, ("cancel",)) == {"sent": "Guten Morgen ich ", "starts": 1, "waits": []}


def test_two_pages_that_listen_do_not_take_turns_for_ever(listen: Callable[..., dict[str, Any]]) -> None:
    lost = [("error", "aborted"), ("end",)]
    assert listen(*lost) == {"sent": "", "starts": 1, "waits": [250]}
    again = listen(*[*lost, ("timer",)] * 7)
    assert again == {"sent": "", "starts": 8, "waits": [250, 500, 1000, 2000, 4000, 8000, 8000]}
    # Who has listened to the end is not in anybody's way; a silence costs nothing.
    assert listen(*lost, ("timer",), ("error", "no-speech"), ("end",), *lost)["waits"] == [250, 250]
    # The user has ended it meanwhile.
    assert listen(*lost, ("stop",), ("timer",))["starts"] == 1
    assert listen(*lost, ("cancel",), ("timer",))["starts"] == 1
