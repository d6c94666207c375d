"""Which pods go first when there are too many: those whose going hurts least, in the order that ReplicaSets have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from springtide.cluster.resources import Object
from springtide.simulator.behaviours import pods as state

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_NANOSECONDS = 10**9


def surplus(pods: Sequence[Object], wanted: int, now: int) -> list[Object]:
    """Choose the active pods of one controller that are too many."""
    return by_worth(pods, now)[: len(pods) - wanted] if len(pods) > wanted else []


def by_worth(pods: Sequence[Object], now: int) -> list[Object]:
    """Sort active pods of one controller: the first is the first to go.

    Unbound ones, pending ones, unready ones, cheap ones, ones that share their node with more others, young ones, ones
    that restarted more. Ages count by magnitude only, so that which of many pods of about one age goes is left to
    chance: to the uid.
    """
    neighbours = Counter(pod["spec"].get("nodeName") for pod in pods if state.is_active(pod))

    def worth(pod: Object) -> tuple[object, ...]:
        node = pod["spec"].get("nodeName")
        since = state.ready_since(pod)
        return (
            bool(node),
            _PHASES.get(state.phase(pod), 2),
            since is not None,
            _cost(pod),
            -neighbours[node] if node else 0,
            _magnitude(now - since) if since is not None else 0,
            -state.restarts(pod),
            _magnitude(now - state.created_at(pod)),
            pod["metadata"]["uid"],
        )

    return sorted(pods, key=worth)


def _cost(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _magnitude(seconds: int) -> int:
    """Give the whole binary logarithm of an age, which Kubernetes takes of nanoseconds; -1 for none."""
    return (max(seconds, 0) * _NANOSECONDS).bit_length() - 1
