"""One request on its way: what it has drawn, and what it has been answered, from one try to the next."""

from __future__ import annotations

from collections.abc import Callable

from springtide.cluster.resources import Object
from springtide.simulator.api.lifecycle import Birth
from springtide.simulator.api.reviews import Review, ReviewNeeded, Stage


class Rounds:
    """Which webhooks are to see the object again, because somebody has changed it after them."""

    def __init__(self) -> None:
        self._asked: dict[str, None] = {}
        self._again: set[str] = set()
        self._left: Object | None = None

    def asked(self, uid: str) -> None:
        """Take note of a webhook that wants to see later changes."""
        self._asked[uid] = None

    def changed(self) -> None:
        """Take note that the object has changed: whoever has seen it is to see it again."""
        self._again.update(self._asked)
        self._asked.clear()

    def ended(self, left: Object | None) -> None:
        """Take note of what the object is after a round."""
        self._left = left

    def reopened(self, item: Object | None) -> bool:
        """Tell whether another round is needed, given what the cluster has made of the object."""
        if item != self._left:
            self.changed()
        return bool(self._again)

    def is_due(self, uid: str) -> bool:
        """Tell whether a webhook is to see the object again."""
        return uid in self._again


class RequestHearing:
    """The hearing of one request; `concerned` tells whether there is anybody to ask."""

    def __init__(self, now: int, concerned: Callable[[Review], bool]) -> None:
        self.now = now
        self.warnings: dict[str, None] = {}
        """What the user is warned of, each thing once."""
        self.rounds = Rounds()
        self._concerned = concerned
        self._answers: list[tuple[Review, Object | None]] = []
        self._births: list[Birth] = []
        self._drawn = 0

    def begin(self) -> None:
        """Begin a try: what the last one drew is drawn again."""
        self._drawn = 0

    def birth(self, draw: Callable[[], Birth]) -> Birth:
        """Give what the server gives to a new object: the same in every try."""
        if self._drawn == len(self._births):
            fresh = draw()
            suffix = fresh.suffix()
            self._births.append(Birth(fresh.uid, fresh.created, lambda: suffix))
        self._drawn += 1
        return self._births[self._drawn - 1]

    def heard(self, review: Review) -> Object | None:
        """Give the object as reviewers leave it; `ReviewNeeded` where they have not been asked."""
        for known, answer in self._answers:
            if known == review:
                return review.new if answer is known.new else answer
        if not self._is_open(review):
            return review.new
        raise ReviewNeeded(review)

    def answer(self, review: Review, left: Object | None) -> None:
        """Take note of an answer: the object as reviewers leave it."""
        self._answers.append((review, left))

    def _is_open(self, review: Review) -> bool:
        again = review.stage is Stage.REINVOKING
        return self._concerned(review) and (not again or self.rounds.reopened(review.new))
