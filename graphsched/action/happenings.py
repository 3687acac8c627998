"""The event objects of events.k8s.io/v1 that this process makes, whatever they are about.

Comes in: what happened to which object, in words. Goes out: the object's name, path and text, to be sent by `events`
and `notices`. Invariant: no two have the same name, and none is longer than the API takes.
"""

from __future__ import annotations

import datetime as dt
import re
import typing

import msgspec

from graphsched.base.kit import clock as clocks
from graphsched.base.values import keys

NOTE_BYTES_MAX = 1024
NAME_LENGTH_MAX = 253
NORMAL = "Normal"
WARNING = "Warning"
_CUT = " ..."


class Subject(typing.NamedTuple):
    """What an event is about; `namespace` is empty for an object that has none."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str = ""


class Made(typing.NamedTuple):
    """An event: its name, the collection it is created in, its text."""

    name: str
    path: str
    body: bytes


class Maker:
    """Makes the events of one process."""

    def __init__(self, *, controller: str, instance: str, clock: clocks.Clock) -> None:
        """Report as this controller, the scheduler's name, and this instance; `clock` is for names and times."""
        self._controller = controller
        self._instance = instance[:128]
        self._clock = clock
        self._serial = 0

    def made(self, subject: Subject, *, kind: str, reason: str, action: str, note: str) -> Made:
        """A new event about the subject; a long note is cut."""
        self._serial += 1
        wall = self._clock.wall()
        name = event_name(subject.name, f"{int(wall * 1e6):x}{self._serial & 0xFFFF:04x}")
        namespace = subject.namespace or keys.DEFAULT_NAMESPACE
        regarding = {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "name": subject.name,
            "uid": subject.uid,
        }
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": moment(wall),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "type": kind,
            "regarding": regarding | ({"namespace": subject.namespace} if subject.namespace else {}),
            "note": cut(note),
        }
        return Made(name, collection(namespace), msgspec.json.encode(event))


def cut(note: str) -> str:
    """The note within the API's limit in bytes; a longer one ends in ` ...`."""
    raw = note.encode()
    if len(raw) <= NOTE_BYTES_MAX:
        return note
    return raw[: NOTE_BYTES_MAX - len(_CUT)].decode(errors="ignore") + _CUT


def event_name(subject: str, suffix: str) -> str:
    """A name for an event about a subject: its own, shortened where the whole would be too long for a name."""
    stem = re.sub(r"[^a-z0-9]+$", "", subject[: NAME_LENGTH_MAX - len(suffix) - 1])
    return f"{stem}.{suffix}"


def collection(namespace: str) -> str:
    """The path of the events of a namespace."""
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def moment(wall: float) -> str:
    """A time as the API writes it; seconds since the epoch."""
    return dt.datetime.fromtimestamp(wall, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
