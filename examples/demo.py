"""What `make demo` runs: train the toy task in about a minute, then translate live, one word behind the speaker."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import stacl
from stacl.__main__ import main
from stacl.corpora.base import corpus
from stacl.view import TerminalView

RUN = Path("runs/demo")
PACE = 0.35  # seconds a word: a calm speaker


def train() -> None:
    if (RUN / "model.safetensors").exists():
        print(f"The toy model in {RUN} is trained already.\n")
        return
    print("Training a small Transformer to repeat made-up words, always one word behind the speaker (wait-1).")
    print("It never sees a word before it is said. About a minute:\n")
    code = main(["train", "configs/toy.toml", "--out", str(RUN), *(["--resume"] if RUN.exists() else [])])
    if code:
        sys.exit(code)


def interpret(translator: stacl.Translator, sentence: str) -> None:
    """Hear a sentence word by word, say what may be said."""
    live = translator.stream("wait-k:1")
    view = TerminalView(translator.source_language, translator.target_language) if sys.stdout.isatty() else None
    for word in [*sentence.split(), None]:
        if word is not None:
            time.sleep(PACE)
        said = [written.text for written in (live.close() if word is None else live.read(word))]
        if view:
            if word is not None:
                view.heard(word)
            for text in said:
                view.said(text)
        else:
            print(f"  heard {word or '(the end)':<12} said {' '.join(said)}", flush=True)
    if view:
        view.end()
    latency = stacl.latency(live.trace)
    print(f"  path {live.trace.actions()}   average lagging {latency['AL']:.2f} words\n")


def tell_more() -> None:
    print("What to try next:")
    print("  .venv/bin/stacl translate runs/demo            type the words above; each is repeated at its space")
    print("  .venv/bin/stacl show wait-k:3,ratio=1.25       draw a reading policy")
    print("  .venv/bin/stacl train configs/multi30k-de-en.toml --set data.root=FOLDER    a real one, German to English")
    print("  .venv/bin/stacl --help                         everything else")


if __name__ == "__main__":
    train()
    print("Now it listens:\n")
    loaded = stacl.load(RUN)
    for source, _ in list(corpus("copy").open("test"))[:3]:
        interpret(loaded, source)
    tell_more()
