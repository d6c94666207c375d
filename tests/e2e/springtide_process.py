"""Our own commands as processes of a live cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.processes import Program

SPRINGTIDE = Path(sys.executable).with_name("springtide")
"""The command, as it was installed beside the interpreter that runs the tests."""
NAMESPACE = "springtide-system"


def springtide(name: str, folder: Path, *arguments: str | Path, address: str = "") -> Program:
    """Prepare a process that runs `springtide` with these arguments, as if in a pod with this address.

    Its log is in the folder.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        # Never use a cluster that is configured on this machine.
        "KUBECONFIG": str(folder / "none"),
        "PYTHONUNBUFFERED": "1",
        **({"POD_IP": address} if address else {}),
    }
    return Program(name, [SPRINGTIDE, *arguments], log=folder / f"{name}.log", environment=environment)


def controller(name: str, folder: Path, kubeconfig: Path, *arguments: str) -> Program:
    """Prepare a process that runs our controllers against a live cluster, by default without webhooks."""
    return springtide(
        name,
        folder,
        "controller",
        "--kubeconfig",
        kubeconfig,
        "--namespace",
        NAMESPACE,
        "--metrics-port",
        "0",
        "--health-port",
        "0",
        "--log-format",
        "text",
        *arguments,
    )


@contextmanager
def started(*programs: Program) -> Iterator[None]:
    """Run programs for as long as the block lasts; whatever is left of them is stopped then."""
    try:
        for program in programs:
            program.start()
        yield
    except BaseException:
        for program in programs:
            sys.stderr.write(f"--- the last words of {program.name}:\n{program.last_words()}\n")
        raise
    finally:
        for program in programs:
            if program.running:
                program.stop()
