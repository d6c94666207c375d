"""What the cluster refuses for good, as an error of the provider whose groups live in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from springtide.cluster.errors import BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound
from springtide.providers.port import ProviderError


@contextmanager
def refusals_of_the_cluster(doing: str) -> Iterator[None]:
    """Turn refusals that the same request will meet again into a `ProviderError`; all others pass as they are."""
    try:
        yield
    except (BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound) as failure:
        raise ProviderError(type(failure).__name__, f"{doing}: {failure}", retryable=False) from failure
