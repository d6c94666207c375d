"""Who a bearer token belongs to."""

from __future__ import annotations

import hmac
import secrets

from springtide.simulator.api.performing import ADMIN, User


class Tokens:
    """The tokens that are known; all of them are compared, in the same time whatever is asked."""

    def __init__(self, users: dict[str, User] | None = None) -> None:
        self._users = dict(users or {})

    def issue(self, user: User = ADMIN) -> str:
        """Make a token for a user."""
        token = secrets.token_urlsafe(32)
        self._users[token] = user
        return token

    def __call__(self, token: str) -> User | None:
        """Tell whose token this is; None for one that nobody was given."""
        given, found = token.encode(), None
        for known, user in self._users.items():
            if hmac.compare_digest(known.encode(), given):
                found = user
        return found
