"""Tables: what `kubectl get` prints, made by the server as a real one makes them."""

from springtide.apiserver.http.tables.view import TableView, layout_of

__all__ = ["TableView", "layout_of"]
