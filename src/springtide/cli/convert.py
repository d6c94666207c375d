"""`springtide convert`: the canonical form of anything that is read leniently."""

from __future__ import annotations

from pathlib import Path

import click

from springtide.apis.canonical import Rewritten, canonical_text
from springtide.cli.arguments import files_argument
from springtide.cli.inputs import Source, read_inputs


@click.command("convert")
@files_argument
@click.option("-w", "--write", is_flag=True, help="Change the files instead of printing.")
@click.option("-q", "--quiet", is_flag=True, help="Do not say what was changed.")
def command(paths: tuple[str, ...], write: bool, quiet: bool) -> None:
    """Rewrite manifests in their canonical form, comments and layout kept where possible.

    Aliases become the names that the API has, NodePool v1beta1 becomes v1, and slips that can mean only one thing
    are mended (`//` comments that break the YAML, a missing colon, `apiversion`, `ruleName`, Mon-Fri in a list of
    weekdays). What was changed is told on standard error. Everything else is left as it is: run `springtide check`
    afterwards.

    \b
      springtide convert old.yaml > new.yaml
      springtide convert -w manifests/

    Exit codes: 0 fine; 2 something could not be read.
    """
    sources, unread = read_inputs(paths)
    for failure in unread:
        click.echo(f"{failure.name}: {failure.message}", err=True)
    failed = bool(unread)
    printed: list[str] = []
    for source in sources:
        rewritten = canonical_text(source.text)
        failed = failed or bool(rewritten.unreadable)
        _tell(source, rewritten, quiet=quiet)
        if not write or source.name == "<stdin>":
            printed.append(rewritten.text)
        elif rewritten.text != source.text:
            failed = not _write(source.name, rewritten.text) or failed
    if printed:
        click.echo(_joined(printed), nl=False)
    raise SystemExit(2 if failed else 0)


def _write(name: str, text: str) -> bool:
    try:
        Path(name).write_bytes(text.encode())
    except OSError as failure:
        click.echo(f"{name}: {(failure.strerror or str(failure)).lower()}", err=True)
        return False
    return True


def _tell(source: Source, rewritten: Rewritten, *, quiet: bool) -> None:
    for item in rewritten.unreadable:
        hint = f" ({item.hint})" if item.hint else ""
        click.echo(f"{source.name}:{item.line}:{item.column}: left as it is: {item.message}{hint}", err=True)
    if quiet:
        return
    for change in rewritten.changes:
        click.echo(f"{source.name}:{change.line}: {change.message}", err=True)


def _joined(texts: list[str]) -> str:
    """Put several files into one stream of documents."""
    joined = ""
    for text in filter(None, texts):
        if joined and not text.startswith("---"):
            joined += "---\n"
        joined += text if text.endswith("\n") else f"{text}\n"
    return joined
