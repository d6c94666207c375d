"""Custom resources: what a CustomResourceDefinition makes the API server do.

`serve` turns a definition into the kinds that it serves, or refuses it; `compile_schema` gives the engine behind them
to whoever has a schema without a definition.
"""

from springtide.apiserver.custom.definition import CompiledSchema, compile_schema, served_kinds, with_accepted_status

__all__ = ["CompiledSchema", "compile_schema", "served_kinds", "with_accepted_status"]
