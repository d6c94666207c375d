"""Validation rules of custom resources (`x-kubernetes-validations`), written in CEL."""

from springtide.apiserver.custom.cel.rules import RuleNode, compile_rules, evaluate_rules

__all__ = ["RuleNode", "compile_rules", "evaluate_rules"]
