"""The built-in kinds: their schemas, defaults, conversion and validation.

Schemas are data of a kube-apiserver (`kinds.json`, written by `tools/builtin_kinds.py`), and so are plain defaults
(`defaults.json`) and enums (`enums.json`). Code holds the defaults that depend on other fields and the validation
rules. Unknown fields are kept.
"""

from springtide.apiserver.builtin.conversion import convert
from springtide.apiserver.builtin.registry import kinds, kubernetes_version

__all__ = ["convert", "kinds", "kubernetes_version"]
