"""What an answer of Prometheus means: one exact number, or words for why there is none."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import msgspec

from springtide.metrics.reading.inprocess import many_samples
from springtide.metrics.reading.port import Unreadable

_DECIMAL = re.compile(r"[+-]?(\d{1,400}(\.\d{0,1100})?|\.\d{1,1100})([eE][+-]?\d{1,3})?")
"""Every number that a float can be, written in any way; an exponent of more digits would take for ever to expand."""


class _Sample(msgspec.Struct):
    metric: dict[str, str] = {}
    value: tuple[float, str] | None = None
    """The time and the value; a histogram has none."""


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"null")


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


_UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What decoding raises; the latter where brackets are nested too deeply to be followed."""
_ANSWER = msgspec.json.Decoder(_Answer)
_VECTOR = msgspec.json.Decoder(list[_Sample])
_SCALAR = msgspec.json.Decoder(tuple[float, str])


def number_of(body: bytes) -> Fraction:
    """Read the answer to a query that was answered; raises `Unreadable`."""
    try:
        answer = _ANSWER.decode(body)
        if answer.status != "success" or answer.data is None:
            raise _failed(answer.error_type, answer.error)
        match answer.data.result_type:
            case "scalar":
                return _exact(_SCALAR.decode(answer.data.result)[1])
            case "vector":
                return _only(_VECTOR.decode(answer.data.result))
            case other:
                raise Unreadable(
                    "NotANumber",
                    f"the result is a {words(other)} instead of one number: apply a function such as avg_over_time()",
                    lasting=True,
                )
    except _UNREADABLE as failure:
        raise Unreadable("PrometheusFailed", f"the answer is not that of a Prometheus: {failure}") from failure


def refusal_of(code: int, body: bytes) -> Unreadable:
    """Say what an answer means whose code is not that of a success."""
    if 300 <= code < 400:
        return Unreadable(
            "PrometheusRefused", f"it answers {code}, a redirection, which is not followed: give the address behind it"
        )
    try:
        answer = _ANSWER.decode(body)
    except _UNREADABLE:
        answer = _Answer("")
    if answer.status == "error" and answer.error:
        return _failed(answer.error_type, answer.error)
    text = words(re.sub(r"<[^>]*>", " ", body.decode(errors="replace")))
    told = f"it answers {code}: {text}" if text else f"it answers {code}, and nothing more"
    return Unreadable("PrometheusRefused" if code < 500 else "PrometheusFailed", told)


def words(text: str) -> str:
    """Quote what a server says, in one line."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def _failed(kind: str, told: str) -> Unreadable:
    """Say what Prometheus says itself; what it calls bad data is a query that it does not understand."""
    if kind == "bad_data":
        return Unreadable("NotPromQL", words(told), lasting=True)
    return Unreadable("PrometheusFailed", words(told) or "it says that it failed, and not why")


def _only(samples: list[_Sample]) -> Fraction:
    if not samples:
        raise Unreadable("NoSample", "the result has no sample: no series is selected, or all are older than 5 minutes")
    if len(samples) > 1:
        raise Unreadable("ManySamples", many_samples([_labels(sample.metric) for sample in samples]))
    if samples[0].value is None:
        raise Unreadable(
            "NotANumber", "the result is a histogram instead of a number: apply histogram_quantile() or histogram_sum()"
        )
    return _exact(samples[0].value[1])


def _exact(text: str) -> Fraction:
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    if text.lstrip("+-").lower() in ("nan", "inf", "infinity"):
        raise Unreadable("NoValue", f"the result is {text}, not a number: is there something to divide by?")
    raise Unreadable("PrometheusFailed", f"the answer has {words(text)!r} where a number should be")


def _labels(metric: dict[str, Any]) -> str:
    name = metric.get("__name__", "")
    return words(name + "{" + ",".join(f'{key}="{metric[key]}"' for key in sorted(metric) if key != "__name__") + "}")
