"""Where cases are played: a server, and what all plays on it share."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.conformance.case import Case
from tests.conformance.play import Object, Play
from tests.conformance.symbols import told
from tests.conformance.wire import Endpoint, Wire

SERVICE_ACCOUNT = "conformance"
"""What the pods of the cases run as: a server that insists on an account finds it."""


@contextmanager
def stage(endpoint: Endpoint) -> Iterator[Callable[[Case], list[Object]]]:
    """Give what plays a case and tells the answers in symbols; shared definitions go when the stage is left."""
    wire = Wire(endpoint)
    shared: dict[str, str] = {}
    try:
        yield lambda case: _played(case, Play(wire, f"c{secrets.token_hex(4)}z", shared))
    finally:
        for group in shared.values():
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
            wire.request("DELETE", path, {}, None, {})
        wire.close()


def _played(case: Case, play: Play) -> list[Object]:
    try:
        play.prepare("/api/v1/namespaces", {"metadata": {"name": play.namespace}})
        play.prepare("v1/serviceaccounts", {"metadata": {"name": SERVICE_ACCOUNT}})
        case.scene(play)
        return told(play.steps, {play.group: "{group}", play.namespace: "{ns}"})
    finally:
        play.clean()
