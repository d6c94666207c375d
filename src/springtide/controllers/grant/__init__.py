"""Grants: whether a Grant is in force, and what objects of a namespace may reach."""

from springtide.controllers.grant.controller import GrantController

__all__ = ["GrantController"]
