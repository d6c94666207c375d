"""OpenAPI: the structure of everything that is served, for `kubectl explain`, validation and editors."""

from springtide.simulator.http.openapi.publishing import OpenApi

__all__ = ["OpenApi"]
