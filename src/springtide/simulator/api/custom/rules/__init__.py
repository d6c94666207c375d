"""Validation rules of custom resources, written in CEL."""

from springtide.simulator.api.custom.rules.book import RuledPlace, judge_rules, rules_of

__all__ = ["RuledPlace", "judge_rules", "rules_of"]
