"""The command line."""

from springtide.cli.main import main

__all__ = ["main"]
