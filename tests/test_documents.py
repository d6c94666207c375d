"""Documents and examples: links have targets, and manifests have no errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from springtide.cli.main import main

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
OURS = sorted([*(ROOT / "docs" / "kinds").glob("*.md"), ROOT / "docs" / "manifests.md"])

_LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
_MANIFEST = re.compile(r"```yaml\n(?P<text>apiVersion:.*?)```", re.DOTALL)
_HEADING = re.compile(r"^#+ (?P<words>.*)$", re.MULTILINE)


def named(path: Path) -> str:
    """Return a file's path within the repository."""
    return path.relative_to(ROOT).as_posix()


def anchors_of(page: Path) -> set[str]:
    """List the anchors of a page's headings."""
    headings = (found["words"] for found in _HEADING.finditer(page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> list[str]:
    """List the links of a page without a target."""
    dead = []
    for found in _LINK.finditer(page.read_text(encoding="utf-8")):
        target = (page.parent / found["path"]).resolve() if found["path"] else page
        anchor = found["anchor"]
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors_of(target)):
            dead.append(found[0])
    return dead


def manifests_in(page: Path) -> list[str]:
    """List the complete manifests on a page."""
    return [found["text"] for found in _MANIFEST.finditer(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_has_a_target(page: Path) -> None:
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[here](#one) [there](#two) [nowhere](other.md) [out](https://example.com/#x)", "utf-8")

    assert dead_links(page) == ["](#two)", "](other.md)"]


@pytest.mark.parametrize("page", OURS, ids=named)
def test_manifests_in_documents_have_no_errors(page: Path) -> None:
    manifests = manifests_in(page)

    assert manifests
    for manifest in manifests:
        result = CliRunner().invoke(main, ["check", "-"], input=manifest)
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_examples_have_no_problems(example: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--strict", str(example)])

    assert result.exit_code == 0, result.output
    assert example.read_text(encoding="utf-8").startswith("# ")
