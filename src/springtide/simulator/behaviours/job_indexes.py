"""Jobs whose completions are numbered: which numbers are complete, and which are next."""

from __future__ import annotations

from collections.abc import Sequence

from springtide.cluster.resources import Object
from springtide.simulator.behaviours.job_tracking import Count, completion_index


def completed_indexes(text: str) -> list[int]:
    """Read a list of indexes such as `1,3-5`."""
    indexes: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes += range(int(first), int(last or first) + 1)
    return indexes


def written_indexes(indexes: Sequence[int]) -> str:
    """Write a list of indexes, runs of three and more as a range."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    runs = [(str(run[0]) if len(run) == 1 else f"{run[0]}{',' if len(run) == 2 else '-'}{run[-1]}") for run in parts]
    return ",".join(runs)


def newly_done(pods: Sequence[Object], counted: Count, done: list[int]) -> list[int]:
    """Add the indexes whose pods have succeeded since."""
    fresh = [
        index
        for pod in pods
        if pod["metadata"]["uid"] in counted.uncounted_succeeded and (index := completion_index(pod)) is not None
    ]
    return sorted({*done, *fresh})


def free_indexes(completions: int, done: list[int], active: Sequence[Object]) -> list[int]:
    """List the indexes that are neither complete nor under way, in order."""
    taken = {*done, *(completion_index(pod) for pod in active)}
    return [index for index in range(completions) if index not in taken]
