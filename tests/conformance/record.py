"""Records the answers of a kube-apiserver: `python -m tests.conformance.record [AREA…]`.

The server is the control plane of the end-to-end tests, without and with controllers, or the one that `--url` and
`--token` name. Cases that need the other setup keep their recorded answers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from tests.conformance.answers import recorded, write
from tests.conformance.case import all_cases
from tests.conformance.servers import case_runner
from tests.conformance.session import Object
from tests.conformance.wire import Endpoint
from tests.e2e.assets import find
from tests.e2e.control_plane import running

_Server: TypeAlias = tuple[bool, AbstractContextManager[Endpoint]]
"""Whether controllers run, and the endpoint."""


def record(endpoint: Endpoint, areas: list[str], *, controllers: bool) -> int:
    """Run the cases of some areas, or all, and record the answers; returns the number of cases."""
    chosen: dict[str, dict[str, Sequence[Object]]] = {}
    count = 0
    with case_runner(endpoint) as played:
        for case in all_cases():
            if areas and case.area not in areas:
                continue
            answers = chosen.setdefault(case.area, {})
            if case.controllers == controllers:
                answers[case.name] = played(case)
                count += 1
            elif case.name in recorded(case.area):
                answers[case.name] = recorded(case.area)[case.name]
    for area, answers in chosen.items():
        write(area, answers)
    return count


def main() -> None:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(description="Record the answers of a real API server.")
    parser.add_argument("areas", nargs="*", metavar="AREA", help="what to record; everything, where nothing is named")
    parser.add_argument("--url", help="a server that runs already, instead of the control plane of the tests")
    parser.add_argument("--token", default="", help="who we are at that server")
    parser.add_argument("--controllers", action="store_true", help="controllers run there: record what needs them")
    asked = parser.parse_args()
    if asked.url:
        servers: list[_Server] = [(asked.controllers, nullcontext(Endpoint(asked.url, asked.token)))]
    else:
        servers = [(controllers, _own(controllers=controllers)) for controllers in (False, True)]
    for controllers, server in servers:
        with server as endpoint:
            count = record(endpoint, asked.areas, controllers=controllers)
        sys.stdout.write(f"recorded {count} cases {'with' if controllers else 'without'} controllers\n")


@contextmanager
def _own(*, controllers: bool) -> Iterator[Endpoint]:
    with TemporaryDirectory() as folder, running(find(), Path(folder), controllers=controllers) as plane:
        yield Endpoint(plane.url, plane.token)


if __name__ == "__main__":
    main()
