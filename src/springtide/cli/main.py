"""The `springtide` command: a table of subcommands, each imported when it is used, so that --help is fast."""

from __future__ import annotations

import difflib
import importlib
import os

import click

from springtide import __version__

_COMMANDS = {
    "check": ("springtide.cli.check", "Find every problem of manifests, each with its place and its fix."),
    "preview": ("springtide.cli.preview", "Show what manifests will do over time: a picture, or data."),
    "simulate": (
        "springtide.cli.simulate",
        "Run the real controllers on manifests, over virtual days in seconds.",
    ),
    "up": ("springtide.cli.up", "Run an embedded cluster with all controllers, for kubectl and for scripts."),
    "controller": ("springtide.cli.controller", "Run the controllers on a live cluster."),
    "explain": (
        "springtide.cli.explain",
        "Say what an object of a cluster wants now, why, what comes next, what stops it.",
    ),
    "explain-budget": (
        "springtide.cli.explain_budget",
        "Say how many nodes may be disrupted, by reason, and why.",
    ),
    "plan": (
        "springtide.cli.plan",
        "Show which nodes pending pods need, what they cost, and why some cannot be placed.",
    ),
    "convert": ("springtide.cli.convert", "Rewrite manifests in canonical form, and import those of KEDA and others."),
    "new": ("springtide.cli.new", "Ask what is needed, show the picture, and write a checked manifest."),
    "crds": ("springtide.cli.crds", "Print the CRDs of every kind."),
}


class _LazyGroup(click.Group):
    """A group that imports a subcommand when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(_COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)  # noqa: S101 - every module of a subcommand has one
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS:
            close = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            ctx.fail(f"there is no command {args[0]!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="springtide")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Springtide: capacity for Kubernetes, there before the peak and gone after it.

    \b
    Start here:
      springtide check manifests/              every problem, with a fix
      springtide preview schedule.yaml         what it will do this week
      springtide simulate manifests/           the real controllers, a virtual week
      springtide up manifests/                 a cluster of your own, for kubectl
      springtide explain metricsproducer/peak  why it is so now, in a cluster
      springtide explain-budget pool.yaml --nodes 40 --disrupting drifted=3
      springtide plan --context production     which nodes the pending pods need, and what they cost
    """
    if "NO_COLOR" in os.environ:
        ctx.color = False
