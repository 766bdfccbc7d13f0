"""Translate the source side of a corpus with a trained model, to train another model on.

  stacl distill runs/full multi30k --root FOLDER --out data/distilled
  stacl train configs/multi30k-de-en.toml --set data.corpora=[] \\
      --set 'data.train_files=["data/distilled.de", "data/distilled.en"]' ...

Translations by a model are simpler and more literal than human ones, and a wait-k model learns more from them
(sequence-level distillation, Kim and Rush 2016). The files have the same lines as the corpus. PREFIX.json records how
they were made. Run the same command again to continue after an interruption.

The same files, read in the other direction, are back-translations (Sennrich et al. 2016): human text as the target, a
model's output as the source. Only the source side of the corpus is read, so its other language may be any:

  stacl distill en-zh mixed-deen:domains=tatoeba --root FOLDER --beam 1 --out FOLDER/backtranslated/everyday
  stacl train configs/finish-zh-en.toml --set 'data.corpora=["files:path=backtranslated/everyday", ...]' ...
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stacl.support.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", metavar="RUN", help="the teacher: a run folder or a shipped model")
    parser.add_argument("corpus", metavar="CORPUS", help="corpus to translate: NAME or NAME:option=value")
    parser.add_argument("--out", required=True, type=Path, metavar="PREFIX", help="write PREFIX.de and PREFIX.en")
    parser.add_argument("--split", default="train", help="part of the corpus (default train)")
    parser.add_argument(
        "--root", metavar="FOLDER", help="folder of the corpora (default: data.root of the run, then STACL_DATA)"
    )
    parser.add_argument("--policy", default="full", metavar="P", help="reading policy of the teacher (default full)")
    parser.add_argument("--beam", type=int, default=5, metavar="N", help="beam of the teacher (default 5; 1: greedy)")
    parser.add_argument("--size", type=int, default=64, metavar="N", help="lines decoded together (default 64)")


def run(args: argparse.Namespace) -> int:
    for name in ("beam", "size"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name} must be at least 1, not {getattr(args, name)}")
    if not args.out.name:
        raise UserError(f"--out {args.out} is a folder; expected the start of two file names, such as data/distilled")
    from stacl import api
    from stacl.decoding.options import Decoding
    from stacl.policies.base import policy
    from stacl.training.distill import Distillation, output_files, source_corpus

    # Read once, before anything is loaded: a policy file may be edited during the run, and a typo is reported early.
    chosen = policy(args.policy)
    translator = api.load(args.run_folder)
    languages = translator.manifest.source, translator.manifest.target
    text = source_corpus(args.corpus, *languages, args.root or _data_root(args.run_folder))
    facts: dict[str, object] = {
        "model": str(args.run_folder),
        "checksum": translator.fingerprint,
        "corpus": f"{args.corpus}/{args.split}",
        "policy": args.policy,
        "schedule": chosen.decoding_policy().fingerprint(),
        "beam": args.beam,
    }
    work = Distillation(args.out, output_files(args.out, *languages), facts)
    sources = (source for source, _ in text.open(args.split))
    work.run(translator, sources, chosen, Decoding(beam=args.beam), args.size)
    print("\n".join(map(str, work.files)))
    return 0


def _data_root(name: str) -> str | None:
    """The data.root that the teacher was trained with, if its folder has a config."""
    from stacl.runs import pretrained
    from stacl.runs.folder import RunFolder

    folder = RunFolder(pretrained.find(name))
    return (folder.settings().data.root if folder.config.exists() else "") or None
