"""The embedded servers of a module of tests, and what plays cases on the one that suits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from tests.conformance.answers import Difference, differences, recorded
from tests.conformance.case import Case
from tests.conformance.embedded import embedded
from tests.conformance.stage import stage

Differing: TypeAlias = Callable[[Case], list[Difference]]


@contextmanager
def differing() -> Iterator[Differing]:
    """Give what plays a case on the embedded server and tells how it differs from the recorded answers."""
    with (
        embedded() as alone,
        stage(alone) as plain,
        embedded(controllers=True) as whole,
        stage(whole) as controlled,
    ):

        def played(case: Case) -> list[Difference]:
            answers = (controlled if case.controllers else plain)(case)
            return list(differences(recorded(case.area)[case.name], answers))

        yield played
