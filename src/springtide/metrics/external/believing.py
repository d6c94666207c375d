"""Keeps an aggregated server told whom to believe: the cluster's ConfigMap is read again and again."""

from __future__ import annotations

import asyncio
import logging

from springtide.cluster.backoff import Backoff
from springtide.cluster.errors import ClusterError, Forbidden
from springtide.cluster.port import Transport
from springtide.metrics.external.door import Door
from springtide.metrics.external.front_proxy import CONFIG_MAPS, SOURCE, FrontProxy, Untold

ROUND_SECONDS = 30.0
"""How often it is read; authorities hand over in days."""
_RETRIES = Backoff(first=0.5, longest=ROUND_SECONDS)

log = logging.getLogger(__name__)


class Believing:
    """The front proxy, as the cluster tells it."""

    def __init__(self, transport: Transport, door: Door, *, round_seconds: float = ROUND_SECONDS) -> None:
        self._transport = transport
        self._door = door
        self._round_seconds = round_seconds
        self.front_proxy: FrontProxy | None = None
        """Whom to believe; None until the cluster has told. What it told last counts while it does not answer."""
        self.problem = f"the ConfigMap {SOURCE} has not been read yet"
        """Why nobody is believed, or nobody new; empty where all is well."""

    async def run(self) -> None:
        """Read it until cancelled; whatever goes wrong is tried again."""
        failures = 0
        while True:
            try:
                await self._read()
                failures = 0
            except (ClusterError, Untold) as failure:
                failures += 1
                self._tell(_words(failure))
            except Exception:
                failures += 1
                log.exception("the ConfigMap %s could not be made use of", SOURCE)
            await asyncio.sleep(_RETRIES.after(failures) if failures else self._round_seconds)

    async def _read(self) -> None:
        told = FrontProxy.read(await self._transport.get(CONFIG_MAPS, SOURCE))
        self._door.trust(told.authorities)
        self.front_proxy = told
        self._tell("")

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("whom to believe is not known for sure: %s", problem)
        self.problem = problem


def _words(failure: Exception) -> str:
    if isinstance(failure, Forbidden):
        role = "extension-apiserver-authentication-reader"
        return f"{failure}; bind the Role {role} of kube-system to our service account"
    return str(failure)
