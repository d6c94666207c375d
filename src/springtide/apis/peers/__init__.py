"""Objects of other projects that scale on time, turned into objects that say the same here.

Each peer has a pure function from an object to a `Conversion`: KEDA's cron triggers, the jobs of
kubernetes-cronhpa-controller, and the annotations of kube-downscaler. What has no equivalent is said, never left out
in silence. Whatever is made passes `springtide check`.
"""

from springtide.apis.peers.conversion import Conversion, Setting, Tree
from springtide.apis.peers.cronhpa import convert_cronhpa
from springtide.apis.peers.downscaler import convert_downscaler
from springtide.apis.peers.keda import convert_keda
from springtide.apis.peers.surroundings import Surroundings
from springtide.apis.peers.text import Replaced, Told, is_converted, replace_peers

__all__ = [
    "Conversion",
    "Replaced",
    "Setting",
    "Surroundings",
    "Told",
    "Tree",
    "convert_cronhpa",
    "convert_downscaler",
    "convert_keda",
    "is_converted",
    "replace_peers",
]
