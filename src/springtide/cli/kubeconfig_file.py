"""The kubeconfig of an embedded cluster, as a file: there once the cluster is ready, and never in place of another's.

People name files here that they care for, such as `~/.kube/config`. What `springtide up` writes begins with a line by
which it is known again; any other file is left as it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_HEADER = "# Written by `springtide up`, which may replace it.\n"


class KubeconfigFile:
    """A file that holds a kubeconfig as soon as there is one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text: str | None = None

    def write(self, text: str) -> None:
        """Write it so that nobody else can read it, as a whole: whoever waits for it finds it complete."""
        self._text = _HEADER + text
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Under a name that nobody can foresee: the folder may be one in which others write, too.
        number, draft = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        with os.fdopen(number, "w") as file:
            file.write(self._text)
        os.replace(draft, self.path)

    def remove(self) -> None:
        """Remove it, if it was written and nobody has written another since."""
        if self._text is not None and self.path.is_file() and self.path.read_text() == self._text:
            self.path.unlink()


@contextmanager
def kubeconfig_file(asked_for: Path | None, data: Path | None) -> Iterator[KubeconfigFile]:
    """Tell where the kubeconfig goes; it is gone when the block is left, unless it belongs to data that are kept.

    Raises `OSError` where a file is in the way that is not ours.
    """
    with ExitStack() as stack:
        if asked_for is not None:
            _refuse_what_is_not_ours(asked_for)
            file = KubeconfigFile(asked_for)
            stack.callback(file.remove)
        elif data is not None:
            file = KubeconfigFile(data / "kubeconfig")
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="springtide-"))
            file = KubeconfigFile(Path(folder) / "kubeconfig")
        yield file


def _refuse_what_is_not_ours(path: Path) -> None:
    if not path.exists():
        return
    # What is no file, such as a device, is not read: it may have no end.
    text = path.read_text(errors="replace") if path.is_file() else "something"
    if text and not text.startswith(_HEADER):
        msg = f'"{path}" is there already, and `springtide up` has not written it: choose another file for --kubeconfig'
        raise FileExistsError(msg)
