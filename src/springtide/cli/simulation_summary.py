"""What `springtide simulate` says at its end: replicas, what bounds cut, and what failed, from the trace alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from springtide.apis.forecast import format_instant
from springtide.cli.pictures.formatting import format_span

if TYPE_CHECKING:
    from springtide.simulator.trace import TraceEntry

_MOST_LINES: Final = 50
_LIMITED: Final = {("ScalingUnbounded", "False"), ("ScalingLimited", "True")}
"""The conditions of our autoscaler and of Kubernetes' own, and the status in which a bound cuts what is asked for."""
_BOUNDS: Final = {"TooManyReplicas": ("capped", "maxReplicas"), "TooFewReplicas": ("held", "minReplicas")}
_ASKED: Final = re.compile(r"(\d+) replicas are asked for")
_CONDITION: Final = re.compile(r"status\.conditions\[(?P<type>\w+)\](?:\.(?P<part>\w+))?")


@dataclass(slots=True)
class _Replicas:
    """The replicas of one object over time."""

    values: list[int]

    def record(self, value: int) -> None:
        """Append a value; an object that is deleted and created with the same replicas has not changed."""
        if self.values[-1:] != [value]:
            self.values.append(value)

    def __str__(self) -> str:
        least, most, changes = min(self.values), max(self.values), len(self.values) - 1
        if not changes:
            return f"{_count(most, 'replica')} throughout"
        return f"{least} to {_count(most, 'replica')} in {_count(changes, 'change')}, {self.values[-1]} at the end"


@dataclass(slots=True)
class _Cut:
    """How long one bound of an autoscaler cut what was asked for."""

    seconds: int = 0
    asked: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Autoscaler:
    """What is known of an autoscaler at an instant, and what its bounds have cut until then."""

    bounds: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)
    cut: tuple[str, int] | None = None
    """The field and value of the bound that cuts now."""
    since: int = 0
    cuts: dict[tuple[str, int], _Cut] = field(default_factory=dict)

    def close(self, at: int) -> None:
        """Count the time since the last look."""
        if self.cut is not None:
            self.cuts.setdefault(self.cut, _Cut()).seconds += at - self.since
        self.since = at

    def look(self) -> None:
        """Find the bound that cuts what is asked for, if one does."""
        self.cut = None
        for name, condition in self.conditions.items():
            bound = _BOUNDS.get(str(condition.get("reason")))
            if (name, condition.get("status")) not in _LIMITED or bound is None or bound[1] not in self.bounds:
                continue
            self.cut = (bound[1], self.bounds[bound[1]])
            asked = _ASKED.match(str(condition.get("message")))
            if asked is not None:
                self.cuts.setdefault(self.cut, _Cut()).asked.append(int(asked[1]))


class SimulationSummary:
    """Collects what the summary says, entry by entry."""

    def __init__(self) -> None:
        self._replicas: dict[tuple[str, str], _Replicas] = {}
        self._autoscalers: dict[tuple[str, str], _Autoscaler] = {}
        self._failures: dict[tuple[str, str, str], dict[str, tuple[int, str]]] = {}
        """When each object failed first, in this order, and the message; by kind, name (not of pods) and reason."""

    def record(self, entry: TraceEntry) -> None:
        """Take one entry of the trace."""
        named = (entry.kind, f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name)
        if entry.kind == "Event":
            self._record_event(entry)
            return
        if entry.kind == "Pod" and entry.verb in ("bind", "delete"):
            # A pod that was pending for a while is no failure.
            self._failures.get(("Pod", "", "FailedScheduling"), {}).pop(named[1], None)
        self._record_replicas(named, entry)
        if entry.kind in ("HorizontalAutoscaler", "HorizontalPodAutoscaler"):
            self._record_autoscaler(named, entry)

    def lines(self, at: int) -> list[str]:
        """Write the summary as of an instant; a few lines, however much has happened."""
        found = [*self._scaled(), *self._cuts(at), *self._failed()]
        more = len(found) - _MOST_LINES
        return [*found[:_MOST_LINES], *([f"… and {more} more"] if more > 0 else [])]

    def _record_replicas(self, named: tuple[str, str], entry: TraceEntry) -> None:
        if entry.verb == "create":
            spec = entry.change.get("spec", [None, None])[1]
            value = spec.get("replicas") if isinstance(spec, dict) else None
            owned = "metadata.ownerReferences" in entry.change
            if isinstance(value, int) and not owned:
                self._replicas.setdefault(named, _Replicas([])).record(value)
        elif named in self._replicas and isinstance(value := entry.change.get("spec.replicas", [None, None])[1], int):
            self._replicas[named].record(value)

    def _record_autoscaler(self, named: tuple[str, str], entry: TraceEntry) -> None:
        known = self._autoscalers.setdefault(named, _Autoscaler(since=entry.at))
        known.close(entry.at)
        if entry.verb == "delete":
            known.cut = None
            return
        spec = entry.change.get("spec", [None, None])[1] or {}
        for name in ("minReplicas", "maxReplicas"):
            value = spec.get(name, entry.change.get(f"spec.{name}", [None, None])[1])
            if isinstance(value, int):
                known.bounds[name] = value
        for path, (_, value) in entry.change.items():
            if (found := _CONDITION.fullmatch(path)) is None:
                continue
            if found["part"]:
                known.conditions.setdefault(found["type"], {})[found["part"]] = value
            else:
                known.conditions[found["type"]] = value if isinstance(value, dict) else {}
        known.look()

    def _record_event(self, entry: TraceEntry) -> None:
        parts = {path: new for path, (_, new) in entry.change.items()}
        about = parts.get("involvedObject")
        if entry.verb != "create" or parts.get("type") != "Warning" or not isinstance(about, dict):
            return
        kind = str(about.get("kind"))
        name = f"{about['namespace']}/{about.get('name')}" if about.get("namespace") else str(about.get("name"))
        # Pods are many, and come and go: they are counted.
        key = (kind, "" if kind == "Pod" else name, str(parts.get("reason")))
        self._failures.setdefault(key, {}).setdefault(name, (entry.at, str(parts.get("message"))))

    def _scaled(self) -> Iterator[str]:
        for (kind, name), replicas in sorted(self._replicas.items()):
            yield f"{kind} {name}: {replicas}"

    def _cuts(self, at: int) -> Iterator[str]:
        for (kind, name), known in sorted(self._autoscalers.items()):
            known.close(at)
            for (bound, value), cut in known.cuts.items():
                how = next(verb for verb, of in _BOUNDS.values() if of == bound)
                text = f"{kind} {name}: {how} at {bound} {value} for {format_span(cut.seconds)}"
                if cut.asked:
                    furthest = max(cut.asked) if bound == "maxReplicas" else min(cut.asked)
                    text += f"; {_count(furthest, 'replica')} {'was' if furthest == 1 else 'were'} asked for"
                yield text

    def _failed(self) -> Iterator[str]:
        for (kind, name, reason), failed in sorted(self._failures.items()):
            if not failed:
                continue
            subject = f"{kind} {name}" if name else _count(len(failed), kind.lower())
            first, message = next(iter(failed.values()))
            yield f"{subject}: {reason}, first at {format_instant(first)}: {message}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
