"""How people look at it: the command line."""

from springtide.cli.main import main

__all__ = ["main"]
