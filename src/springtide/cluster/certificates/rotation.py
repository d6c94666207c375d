"""When certificates are renewed, and how an authority hands over to the next without anybody noticing.

Everything here is pure: a decision is a function of the state and the time, and a step makes the next state. An
authority hands over in four steps, each of which is a write that any replica may make:

1. prepare: a successor is made; its certificate joins the bundle, and signs nothing;
2. announce: the bundle with it has been published, and it is noted when;
3. promote: after a time in which every API server has heard of it, the successor signs, and the one before is former;
4. forget: a former authority leaves the bundle when the last certificate that it has signed has ended.

So at any time whatever any replica may show, however late it learns of a step, is signed by an authority of the
published bundle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from springtide.cluster.certificates.making import make_authority, make_serving
from springtide.cluster.certificates.state import Former, Issued, State, authorities, issued

_DAY = 86_400
_AUTHORITY_NAME = "springtide-webhooks"
_MOST_FORMER = 8
"""How many authorities are taken over from a bundle that was published before; it should be one or two."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things last, in seconds. What is renewed is renewed when two thirds of its time have passed."""

    authority: int = 365 * _DAY
    serving: int = 30 * _DAY
    propagation: int = 3600
    """How long after it was published a bundle has certainly reached every API server."""


class Step(StrEnum):
    """What is to be done next."""

    BEGIN = "begin"
    PREPARE = "prepare"
    ANNOUNCE = "announce"
    PROMOTE = "promote"
    RENEW = "renew"
    FORGET = "forget"
    WAIT = "wait"


def decide(state: State | None, now: int, names: Sequence[str], terms: Terms) -> Step:
    """Tell the next step; a state whose bundle has been published is taken for granted."""
    if state is None:
        return Step.BEGIN
    successor = state.successor
    if not _usable(state.authority, now):
        return Step.PROMOTE if successor is not None and _usable(successor, now) else Step.BEGIN
    if successor is None:
        if _is_due(state.authority, now):
            return Step.PREPARE
    elif not _usable(successor, now):
        return Step.PREPARE
    elif state.announced is None or state.announced > now:
        return Step.ANNOUNCE
    elif state.announced + terms.propagation <= now:
        return Step.PROMOTE
    if _must_renew(state, now, names):
        return Step.RENEW
    if any(old.until <= now for old in state.former):
        return Step.FORGET
    return Step.WAIT


def begin(now: int, names: Sequence[str], terms: Terms, published: bytes = b"") -> State:
    """Start anew; what is published already stays trusted for as long as somebody may show what it has signed."""
    authority = issued(make_authority(_AUTHORITY_NAME, now=now, seconds=terms.authority))
    serving = _serving(authority, names, now, terms)
    former = tuple(
        Former(certificate, min(ends, now + terms.serving))
        for certificate, ends in authorities(published)[:_MOST_FORMER]
        if ends > now
    )
    return State(authority, serving, tuple(names), serving.ends, former=former)


def taken(step: Step, state: State, now: int, names: Sequence[str], terms: Terms) -> State:
    """Make the state after a step that changes one."""
    match step:
        case Step.PREPARE:
            successor = issued(make_authority(_AUTHORITY_NAME, now=now, seconds=terms.authority))
            return replace(state, successor=successor, announced=None)
        case Step.ANNOUNCE:
            return replace(state, announced=now)
        case Step.PROMOTE:
            return _promoted(state, now, names, terms)
        case Step.RENEW:
            # Replicas of two versions may want different names for a while: neither takes the other's away.
            wanted = tuple(names) if set(names) <= set(state.names) else tuple(dict.fromkeys((*names, *state.names)))
            serving = _serving(state.authority, wanted, now, terms)
            return replace(state, serving=serving, names=wanted, signed_until=max(state.signed_until, serving.ends))
        case Step.FORGET:
            return replace(state, former=tuple(old for old in state.former if old.until > now))
        case _:
            return state


def _promoted(state: State, now: int, names: Sequence[str], terms: Terms) -> State:
    assert state.successor is not None  # noqa: S101 - nobody else can be promoted
    serving = _serving(state.successor, names, now, terms)
    former = Former(state.authority.pair.certificate, state.signed_until)
    return State(state.successor, serving, tuple(names), serving.ends, former=(*state.former, former))


def _serving(authority: Issued, names: Sequence[str], now: int, terms: Terms) -> Issued:
    seconds = min(terms.serving, authority.ends - now)
    return issued(make_serving(authority.pair, names, now=now, seconds=seconds))


def _must_renew(state: State, now: int, names: Sequence[str]) -> bool:
    serving = state.serving
    if not _usable(serving, now) or not set(names) <= set(state.names):
        return True
    # One that ends with its authority cannot be prolonged.
    return _is_due(serving, now) and serving.ends < state.authority.ends


def _usable(certificate: Issued, now: int) -> bool:
    """Tell whether a certificate is good now; the clock may have been wrong when it was made."""
    return certificate.begins <= now < certificate.ends


def _is_due(certificate: Issued, now: int) -> bool:
    return 3 * (now - certificate.begins) >= 2 * (certificate.ends - certificate.begins)
