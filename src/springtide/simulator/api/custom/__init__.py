"""Custom resources: what a CustomResourceDefinition makes the API server do.

`serve` turns a definition into the kinds that it serves, or refuses it; `compile_schema` gives the engine behind them
to whoever has a schema without a definition.
"""

from springtide.simulator.api.custom.definition import accepted, serve
from springtide.simulator.api.custom.schema import Schema, compile_schema

__all__ = ["Schema", "accepted", "compile_schema", "serve"]
