"""Reads what a registry exports, as Prometheus would."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families


class Samples:
    """All samples of one scrape."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.text = generate_latest(registry).decode()
        self._samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                place = (sample.name, frozenset(sample.labels.items()))
                assert place not in self._samples, f"{place} is exported twice"
                self._samples[place] = sample.value

    def __call__(self, name: str, **labels: str) -> float:
        """Return one sample; `KeyError` where it is not exported."""
        return self._samples[name, frozenset(labels.items())]

    def labelled(self, name: str) -> dict[tuple[str, ...], float]:
        """Give all samples of a name by the values of their labels, in the order of the labels' names."""
        return {
            tuple(value for _, value in sorted(labels)): sample
            for (found, labels), sample in self._samples.items()
            if found == name
        }
