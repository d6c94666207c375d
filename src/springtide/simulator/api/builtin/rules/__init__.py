"""Rules between fields, and between an object and what it was before: those that users run into.

They are asked only about objects whose fields have the declared types. Wordings are those of kube-apiserver.
"""

from springtide.simulator.api.builtin.rules.making import Rules
from springtide.simulator.api.builtin.rules.table import RULES

__all__ = ["RULES", "Rules"]
