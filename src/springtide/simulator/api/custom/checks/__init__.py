"""What the server refuses a CustomResourceDefinition for."""

from springtide.simulator.api.custom.checks.definition import judge_definition

__all__ = ["judge_definition"]
