"""The chart calls `springtide controller` with options that it has."""

from __future__ import annotations

import re
from pathlib import Path

from springtide.cli.controller import command

TEMPLATE = Path(__file__).parents[2] / "charts" / "springtide" / "templates" / "deployment.yaml"
_ONLY_BY_HAND = {"--kubeconfig", "--context"}
"""A pod finds its cluster by itself."""
_IN_EXTRA_ARGS = {
    f"--prometheus-{name}"
    for name in ("username", "password-file", "header", "client-cert", "client-key", "server-name", "timeout")
}
"""Without them nothing is different; `extraArgs` has room for what few need."""


def test_every_option_is_one_of_the_command() -> None:
    """And all options of the command are set, so that the chart decides what a release does, not a default."""
    arguments = TEMPLATE.read_text(encoding="utf-8").split("args:")[1].split("ports:")[0]
    # `--{{ … ternary "a" "b" }}` stands for either.
    arguments = re.sub(r'--{{.*?ternary "([\w-]+)" "([\w-]+)" }}', r"--\1 --\2", arguments)
    written = set(re.findall(r"--[a-z][a-z-]*", arguments))
    options = {name for option in command.params for name in (*option.opts, *option.secondary_opts) if name[1] == "-"}
    assert written == options - _ONLY_BY_HAND - _IN_EXTRA_ARGS
