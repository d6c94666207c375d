"""The kinds that every cluster has: their structure, their defaults and the rules they obey.

Structure comes as data from a kube-apiserver (`kinds.json`, written by `tools/builtin_kinds.py`), defaults from a
table (`defaults.json`); code holds only what one field takes from another. Fields that are not declared are kept.
"""

from springtide.apiserver.builtin.conversion import convert
from springtide.apiserver.builtin.registry import kinds, kubernetes_version

__all__ = ["convert", "kinds", "kubernetes_version"]
