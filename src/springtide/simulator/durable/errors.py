"""Why a journal cannot be used."""

from __future__ import annotations


class JournalError(Exception):
    """A folder holds no journal that can be read and written; the message says which folder, why, and what would do.

    Nothing has been changed then. A cluster never starts empty where its journal is only out of reach.
    """
