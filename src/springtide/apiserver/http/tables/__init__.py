"""Tables, as `kubectl get` prints them."""

from springtide.apiserver.http.tables.view import TableView, layout_of

__all__ = ["TableView", "layout_of"]
