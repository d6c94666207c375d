"""Objects of one version as another, in a server that needs no webhook for it: our kinds, and the built-in ones."""

from __future__ import annotations

from springtide.apis import conversion
from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object
from springtide.simulator.api import builtin


def convert(item: Object, api_version: str) -> Object:
    """Give an object in another version of its kind; what it is made from stays as it is."""
    if api_version.rpartition("/")[0] in conversion.CONVERTED_GROUPS:
        try:
            return conversion.convert(item, api_version)
        except conversion.Unconvertible as failure:
            raise BadRequest(f"conversion for {item.get('kind')} failed: {failure}") from failure
    return builtin.convert(item, api_version)
