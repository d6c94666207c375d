"""Objects of other projects that scale on time, turned into objects that say the same here.

Each peer has a pure function from an object to a `Conversion`: KEDA's cron triggers, the jobs of
kubernetes-cronhpa-controller, and the annotations of kube-downscaler. What has no equivalent is said, never left out
in silence. Whatever is made passes `springtide check`.
"""

from springtide.apis.importers.conversion import Conversion, ConversionSettings, Tree
from springtide.apis.importers.cronhpa import convert_cronhpa
from springtide.apis.importers.downscaler import convert_downscaler
from springtide.apis.importers.keda import convert_keda
from springtide.apis.importers.manifests import (
    ConversionNotice,
    ImportResult,
    SiblingObjects,
    import_objects,
    is_importable,
)

__all__ = [
    "Conversion",
    "ConversionNotice",
    "ConversionSettings",
    "ImportResult",
    "SiblingObjects",
    "Tree",
    "convert_cronhpa",
    "convert_downscaler",
    "convert_keda",
    "import_objects",
    "is_importable",
]
