"""Rules between fields, and between an object and what it was before: those that users run into.

They are asked only about objects whose fields have the declared types. Wordings are those of kube-apiserver.
"""

from springtide.apiserver.builtin.rules.table import RULES
from springtide.apiserver.builtin.validation import KindRules

__all__ = ["RULES", "KindRules"]
