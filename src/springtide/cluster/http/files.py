"""Files that others replace while we run: tokens and certificates."""

from __future__ import annotations

from pathlib import Path


class ChangingFile:
    """The content of a file, read again whenever the file has changed.

    Looking costs microseconds, so everybody looks with every request, and nobody has to guess how long a token lasts.
    A file that is away for a moment, while it is being replaced, is taken as it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = b""
        self._seen: tuple[int, int, int] | None = None

    def read(self, *, anew: bool = False) -> bytes:
        """Give the content; `anew` where the file is suspected to have changed although it looks the same."""
        try:
            found = self.path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size)
            if anew or seen != self._seen:
                self._content, self._seen = self.path.read_bytes(), seen
        except OSError:
            if self._seen is None:
                raise
        return self._content
