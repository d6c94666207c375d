"""Answers bear the time of the cluster's clock, whatever they answer."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest
from tests.simulator.http.asking import Asker


@pytest.mark.parametrize("path", ["/version", "/api/v1/pods", "/api/v1/namespaces/shop/pods/gone", "/nowhere"])
def test_every_answer_bears_the_clusters_time(path: str) -> None:
    asker = Asker()
    for later in (0, 0, 1, 86_400, -3600):
        asker.now += later
        dates = [value for name, value in asker.ask("GET", path).headers if name == "date"]
        assert [int(parsedate_to_datetime(date).timestamp()) for date in dates] == [asker.now]
