"""`springtide convert`: rewrites manifests in canonical form, and imports those of KEDA and others."""

from __future__ import annotations

import time
from pathlib import Path

import click

from springtide.apis.canonical import ManifestChange, RewrittenManifest, canonical_text
from springtide.apis.importers import ConversionNotice, ConversionOptions, ImportResult, SiblingObjects, import_objects
from springtide.apis.problems import format_path
from springtide.assembly.manifests import LocatedProblem, ManifestSource, misnamed_kinds, read_sources
from springtide.cli.console import show_problem
from springtide.cli.options import ZoneType, files_argument
from springtide.cli.pictures.formatting import printable


@click.command("convert")
@files_argument
@click.option("-w", "--write", is_flag=True, help="Change the files instead of printing.")
@click.option("-q", "--quiet", is_flag=True, help="Do not list what was changed.")
@click.option(
    "--timezone",
    type=ZoneType(),
    metavar="ZONE",
    help="The zone of objects that name none: of cronhpa (Asia/Shanghai if not given), of kube-downscaler, and of times"
    " without an offset (UTC if not given).",
)
def command(paths: tuple[str, ...], write: bool, quiet: bool, timezone: str | None) -> None:
    """Rewrite manifests in their canonical form, comments and layout kept where possible.

    Aliases become the names of the API, NodePool v1beta1 becomes v1, and slips that can mean only one thing are
    corrected (`//` comments that break the YAML, a missing colon, `apiversion`, `ruleName`, Mon-Fri in a list of
    weekdays).

    Objects of other projects that scale by time become Springtide's: ScaledObjects of KEDA with cron triggers,
    CronHorizontalPodAutoscalers, and workloads with annotations of kube-downscaler, whose annotations are removed.
    What has no equivalent is a warning; what cannot be converted is an error and is left unchanged.

    Changes are listed on standard error. Nothing else is changed: run `springtide check` afterwards.

    \b
      springtide convert old.yaml > new.yaml
      springtide convert -w manifests/
      springtide convert cronhpa.yaml --timezone Europe/Berlin

    Exit codes: 0 fine; 1 something could not be converted; 2 something could not be read.
    """
    sources, unread = read_sources(paths)
    for failure in unread:
        click.echo(printable(f"{failure.name}: {failure.message}"), err=True)
    code = 2 if unread else 0
    zone = timezone or "UTC"
    setting = ConversionOptions(now=int(time.time()), zone=timezone)
    printed: list[str] = []
    surroundings = SiblingObjects()
    for source in sources:
        surroundings.read(source.text)
    for source in sources:
        replaced = import_objects(source.text, setting, surroundings)
        rewritten = canonical_text(source.text, zone)
        text = canonical_text(replaced.text, zone).text if replaced.changes else rewritten.text
        wrong = misnamed_kinds(source)
        _show_changes(source, rewritten, replaced, quiet=quiet)
        for problem in wrong:
            show_problem(problem, err=True)
        code = max(code, 2 if rewritten.unreadable else 0, 1 if replaced.failed or wrong else 0)
        if not write or source.name == "<stdin>":
            printed.append(text)
        elif text != source.text and not _write(source.name, text):
            code = 2
    if printed:
        click.echo(_joined(printed), nl=False)
    raise SystemExit(code)


def _write(name: str, text: str) -> bool:
    try:
        Path(name).write_bytes(text.encode())
    except OSError as failure:
        click.echo(f"{name}: {(failure.strerror or str(failure)).lower()}", err=True)
        return False
    return True


def _show_changes(source: ManifestSource, rewritten: RewrittenManifest, replaced: ImportResult, *, quiet: bool) -> None:
    for item in rewritten.unreadable:
        hint = f" ({item.hint})" if item.hint else ""
        text = f"{source.name}:{item.line}:{item.column}: left unchanged: {item.message}{hint}"
        click.echo(printable(text), err=True)
    changes = () if quiet else (*rewritten.changes, *replaced.changes)
    lines: list[ManifestChange | ConversionNotice] = [*changes, *replaced.notices]
    for line in sorted(lines, key=_line_of):
        if isinstance(line, ManifestChange):
            click.echo(printable(f"{source.name}:{line.line}: {line.message}"), err=True)
        else:
            show_problem(_located(source, line), err=True)


def _line_of(line: ManifestChange | ConversionNotice) -> int:
    return line.line if isinstance(line, ManifestChange) else line.position.line


def _located(source: ManifestSource, notice: ConversionNotice) -> LocatedProblem:
    return LocatedProblem(
        file=source.name,
        line=notice.position.line,
        column=notice.position.column,
        api_version=notice.api_version,
        kind=notice.kind,
        name=notice.name or None,
        path=format_path(notice.problem.path),
        message=notice.problem.message,
        hint=notice.problem.hint,
        severity=notice.problem.severity,
    )


def _joined(texts: list[str]) -> str:
    """Join several files to one stream of documents."""
    joined = ""
    for text in filter(None, texts):
        if joined and not text.startswith("---"):
            joined += "---\n"
        joined += text if text.endswith("\n") else f"{text}\n"
    return joined
