"""Write docs/commands.md: the help of every command. `make docs` runs this."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from stacl import config
from stacl.__main__ import build_parser
from stacl.support import plugins

PAGE = Path(__file__).with_name("commands.md")


def render() -> str:
    os.environ["COLUMNS"] = "100"  # argparse wraps at the terminal's width
    parser = build_parser()
    verbs = next(action for action in parser._actions if action.dest == "verb").choices
    assert verbs is not None
    parts = [
        "# Commands",
        "",
        "`make docs` generates this page from the help of the program.",
        "",
    ]
    parts += ["```", parser.format_help().rstrip(), "```", ""]
    for name in plugins.names("commands"):
        parts += [f"## stacl {name}", "", "```", verbs[name].format_help().rstrip(), "```", ""]  # type: ignore[index]
        for kind, below in _below(verbs[name]):  # type: ignore[index]
            parts += [f"### stacl {name} {kind}", "", "```", below.format_help().rstrip(), "```", ""]
    parts += [
        "## Fields of a config",
        "",
        "`stacl train --fields` prints them:",
        "",
        "```toml",
        config.describe(),
        "```",
        "",
    ]
    return "\n".join(parts)


def _below(verb: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    """The parsers of subcommands, such as `plot tradeoff`."""
    kinds = (action.choices for action in verb._actions if isinstance(action, argparse._SubParsersAction))
    return [item for choices in kinds for item in choices.items()]


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
