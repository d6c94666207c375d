"""Custom resources: the kinds that a CustomResourceDefinition defines, and what their schemas do to objects.

`served_kinds` validates a definition and returns its kinds; `compile_schema` compiles a schema without a definition.
"""

from springtide.apiserver.custom.definition import CompiledSchema, compile_schema, served_kinds, with_accepted_status

__all__ = ["CompiledSchema", "compile_schema", "served_kinds", "with_accepted_status"]
