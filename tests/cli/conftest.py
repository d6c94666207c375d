"""Running the command as a person would, in a folder of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.logging_state import logging_kept

from springtide.cli import main

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run `springtide` with these arguments; anything but an orderly exit is a failure of the test."""

    def call(*arguments: object, **options: Any) -> Result:
        with logging_kept():
            result = CliRunner().invoke(main, [str(argument) for argument in arguments], **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file of the test's own."""

    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return file
