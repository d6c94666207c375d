"""What a pod asks of a node. Most pods are made of few templates, and whatever is true of one demand is so of all equal
ones: they are read once, and what is found out about them is kept under them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.requests import pod_requests
from springtide.cluster.resources import Object
from springtide.quantity import AmountError

_MOST_REMEMBERED = 4096
"""The pods of a DaemonSet all differ; those of clusters long gone must not be kept for ever."""

Amounts = Mapping[str, int]
"""Resources in billionths, the precision of quantities."""


@dataclass(frozen=True, slots=True)
class Demand:
    """All of a pod that decides where it may run."""

    text: bytes
    """The spec as it is written, but for the node: demands are equal if this is."""
    spec: Object = field(compare=False)
    needs: Amounts = field(compare=False)
    """Nothing where that cannot be read, as no server takes such a pod."""


def demand_of(pod: Object) -> Demand:
    """Tell what a pod asks for, wherever it is."""
    return _read(msgspec.json.encode({name: value for name, value in pod["spec"].items() if name != "nodeName"}))


@lru_cache(maxsize=_MOST_REMEMBERED)
def _read(text: bytes) -> Demand:
    spec = msgspec.json.decode(text)
    try:
        requests = pod_requests(msgspec.convert(spec, PodSpec))
    except (msgspec.ValidationError, AmountError):
        requests = {}
    return Demand(text, spec, {name: amount.nano for name, amount in requests.items()})
