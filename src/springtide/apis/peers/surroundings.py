"""What stands beside an object in the files that are converted: names that are taken, and who scales what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from springtide.apis.objects import members_of
from springtide.apis.peers.conversion import Conversion, Tree, head, part
from springtide.apis.peers.making import free_name, renamed
from springtide.apis.problems import Problem, warning
from springtide.apis.yaml import Document, read

_LONGEST_NAME = 63
_CLUSTER_WIDE = ("Calendar",)
_AUTOSCALERS = (
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("autoscaling.karmada.io", "FederatedHPA"),
    ("autoscaling.karpenter.sh", "HorizontalAutoscaler"),
    ("keda.sh", "ScaledObject"),
)


class Surroundings:
    """Grows with every text that is read and every object that is made: no two of them have one name."""

    def __init__(self) -> None:
        self._taken: set[tuple[str, str, str]] = set()
        self._masters: dict[tuple[str, str, str], list[Tree]] = {}

    def read(self, text: str) -> None:
        """Take note of the objects of a text."""
        for document in read(text):
            for _, value in members_of(document.value) if isinstance(document, Document) else ():
                if isinstance(value, dict):
                    self._note(value)

    def fit(self, value: Tree, conversion: Conversion) -> Conversion:
        """Give what an object becomes names that are free, and say who scales its target already."""
        if conversion.failed or not conversion.made:
            return conversion
        problems: list[Problem] = [*conversion.problems, *self._rivals(value, conversion)]
        made = conversion.made
        for position, item in enumerate(made):
            name = self._free_name(item, str(value["kind"]).lower())
            if name != item["metadata"]["name"]:
                message = f"there is a {item['kind']} `{item['metadata']['name']}` already: the new one is `{name}`"
                problems.append(warning(("metadata", "name"), message))
                made = renamed(made, position, name)
            self._taken.add(_identity(made[position]))
        return replace(conversion, made=made, problems=tuple(problems))

    def _note(self, value: Tree) -> None:
        self._taken.add(_identity(value))
        if head(value) in _AUTOSCALERS and (target := _target(value)) is not None:
            self._masters.setdefault(target, []).append(value)

    def _free_name(self, item: Tree, suffix: str) -> str:
        kind, namespace, name = _identity(item)
        if (kind, namespace, name) not in self._taken:
            return name
        same = {called for its, where, called in self._taken if (its, where) == (kind, namespace)}
        return free_name(f"{name}-{suffix}", same, longest=_LONGEST_NAME)

    def _rivals(self, value: Tree, conversion: Conversion) -> Iterator[Problem]:
        for item in conversion.made:
            target = _target(item)
            masters = self._masters.get(target, []) if target is not None else []
            others = [master for master in masters if _identity(master) != _identity(value)]
            if not others:
                continue
            rival = " and ".join(f"{one['kind']} `{part(one, 'metadata').get('name')}`" for one in others)
            reference = part(item, "spec", "scaleTargetRef")
            yield warning(
                ("metadata", "name"),
                f"{reference.get('kind')} `{reference.get('name')}` is also scaled by {rival}: that and the new"
                f" {item['kind']} will undo each other's work",
                "keep one of them",
            )


def _identity(value: Tree) -> tuple[str, str, str]:
    metadata = part(value, "metadata")
    kind = head(value)[1]
    return (
        kind,
        "" if kind in _CLUSTER_WIDE else _text(metadata.get("namespace")) or "default",
        _text(metadata.get("name")),
    )


def _target(value: Tree) -> tuple[str, str, str] | None:
    reference = part(value, "spec", "scaleTargetRef")
    if not isinstance(reference.get("name"), str):
        return None
    namespace = _text(part(value, "metadata").get("namespace")) or "default"
    return _text(reference.get("kind")) or "Deployment", namespace, reference["name"]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
