"""Tables: what `kubectl get` prints, made by the server as a real one makes them."""

from springtide.simulator.http.tables.choosing import layout_of
from springtide.simulator.http.tables.view import TableView

__all__ = ["TableView", "layout_of"]
