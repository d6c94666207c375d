"""The functions that Kubernetes adds to CEL, for those of them that our engine does not bring.

Types that CEL does not have (quantities, URLs, addresses, networks) are maps with one marked entry, because the engine
lets functions written in Python take and return nothing more special. The marks are made so that equal things are
equal maps.
"""

from __future__ import annotations

from springtide.simulator.api.custom.rules.library.addresses import ADDRESSES
from springtide.simulator.api.custom.rules.library.amounts import AMOUNTS
from springtide.simulator.api.custom.rules.library.expressions import EXPRESSIONS
from springtide.simulator.api.custom.rules.library.locations import LOCATIONS
from springtide.simulator.api.custom.rules.library.sequences import SEQUENCES
from springtide.simulator.api.custom.rules.library.signatures import Signature

FUNCTIONS: tuple[Signature, ...] = (*AMOUNTS, *SEQUENCES, *EXPRESSIONS, *LOCATIONS, *ADDRESSES)

__all__ = ["FUNCTIONS", "Signature"]
