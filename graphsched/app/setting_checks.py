"""What of the settings no field alone can tell: names that must exist, and what goes together.

Comes in: settings whose fields are each of the right type and within bounds. Goes out: nothing, or an `InputError` with
field, problem and remedy. `settings.load` asks once, when all is read.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import typing

import msgspec

from graphsched.app import election, reserving
from graphsched.base.kit import hosts
from graphsched.base.values import errors
from graphsched.decision import names, profile as judging
from graphsched.decision.constraints import walk

if typing.TYPE_CHECKING:
    from graphsched.app import settings as configuration

SCORES = (*judging.DEFAULT_WEIGHTS, *judging.GRAPH_WEIGHTS, *judging.ON_REQUEST)
"""Plugins whose weight can be set."""
FILTERS = tuple(check.plugin for check in walk.IN_ORDER if check.plugin not in {names.POOL, names.HEADROOM})
"""Plugins whose filters can be switched off; pool and headroom have settings of their own."""

# A qualified name, as events.k8s.io asks of reportingController.
_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([-\w]{0,61}\w)?(\.\w([-\w]{0,61}\w)?)*\.?", re.ASCII)
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_KEY = re.compile(rf"([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_LABEL_VALUE.pattern}")


def check(settings: configuration.Settings, *, place: str) -> None:
    """Raise where the settings do not go together.

    Raises:
        InputError: They do not; `place` is where they are from.
    """
    _check_texts(msgspec.to_builtins(settings), "", place=place)
    name = settings.scheduler_name
    if _NAME.fullmatch(name) is None:
        raise errors.InputError(
            place, "schedulerName", problem=f'"{name}" is not a name', remedy="e.g. graph-scheduler"
        )
    if name == "default-scheduler":
        raise errors.InputError(
            place, "schedulerName", problem=f'"{name}" is the cluster\'s own scheduler', remedy="choose another name"
        )
    other = settings.shadow.scheduler_name
    if _NAME.fullmatch(other) is None:
        raise errors.InputError(
            place, "shadow.schedulerName", problem=f'"{other}" is not a name', remedy="e.g. default-scheduler"
        )
    _check_http(settings.http, place=place)
    _check_pool(settings.exclusive, place=place)
    if _LABEL_KEY.fullmatch(settings.advise.gate) is None:
        raise errors.InputError(
            place,
            "advise.gate",
            problem=f'"{settings.advise.gate}" is not the name of a scheduling gate',
            remedy="e.g. graphsched.io/advise",
        )
    election.check(settings.leader_election, scheduler=name, place=place)
    queue = settings.queue
    if 0 < queue.max_backoff_seconds < queue.initial_backoff_seconds:
        raise errors.InputError(
            place,
            "queue.maxBackoffSeconds",
            problem=f"{queue.max_backoff_seconds:g} is less than initialBackoffSeconds",
            remedy=f"at least {queue.initial_backoff_seconds:g}, or 0 for no backoff",
        )
    reserving.check(settings.resources, place=place)
    for resource, marks in settings.watermarks.items():
        if marks.low_percent >= marks.high_percent:
            raise errors.InputError(
                place,
                f"watermarks.{resource}.lowPercent",
                problem=f"{marks.low_percent:g} is not below highPercent",
                remedy=f"less than {marks.high_percent:g}",
            )
    for field, given, known in (
        ("profile.weights", settings.profile.weights, SCORES),
        ("profile.disabledFilters", settings.profile.disabled_filters, FILTERS),
    ):
        for plugin in given:
            if plugin not in known:
                raise errors.InputError(
                    place, field, problem=f'unknown plugin "{plugin}"', remedy=nearest(plugin, known)
                )
    for field in ("allocation", "balance"):
        if not getattr(settings.profile, field):
            raise errors.InputError(place, f"profile.{field}", problem="is empty", remedy="name a resource, e.g. cpu")
        if "" in getattr(settings.profile, field):
            raise errors.InputError(place, f"profile.{field}", problem="has an empty name", remedy="e.g. cpu")


def nearest(name: str, known: typing.Sequence[str]) -> str:
    """Which of the known names was meant, or what there is."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"


def _check_texts(value: object, field: str, *, place: str) -> None:
    """No text may break a line of the log, or be what no path and no name can hold."""
    if isinstance(value, str) and not value.isprintable():
        raise errors.InputError(
            place, field, problem="holds a character that is not printed", remedy="write it as plain text on one line"
        )
    if isinstance(value, dict):
        for name, each in value.items():
            _check_texts(name, field, place=place)
            _check_texts(each, f"{field}.{name}" if field else name, place=place)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_texts(each, field, place=place)


def _check_http(http: configuration.HTTPSettings, *, place: str) -> None:
    """What is open to others is encrypted and asks who they are."""
    if http.host and not _is_host(http.host):
        raise errors.InputError(
            place,
            "http.host",
            problem=f'"{http.host[:100]}" is no address and no name of a host',
            remedy="e.g. 127.0.0.1",
        )
    delegated = http.auth == "delegated"
    if not delegated and not hosts.is_loopback(http.host):
        raise errors.InputError(
            place,
            "http.host",
            problem=f'"{http.host}" is reached by other hosts, which auth: loopback is not made for',
            remedy="set http.auth: delegated with http.tls, or http.host: 127.0.0.1",
        )
    if delegated and not http.tls.on:
        raise errors.InputError(
            place,
            "http.auth",
            problem="delegated needs TLS, or tokens would be sent in the clear",
            remedy="set http.tls.certFile and keyFile, or http.tls.selfSigned: true",
        )
    if bool(http.tls.cert_file) != bool(http.tls.key_file):
        raise errors.InputError(
            place, "http.tls", problem="certFile and keyFile go together", remedy="name both, or neither"
        )
    if http.tls.self_signed and http.tls.cert_file:
        raise errors.InputError(
            place, "http.tls", problem="selfSigned and certFile exclude each other", remedy="leave one of them out"
        )


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _HOST.fullmatch(host) is not None
    return True


def _check_pool(pool: configuration.ExclusiveSettings, *, place: str) -> None:
    if _LABEL_KEY.fullmatch(pool.node_label) is None:
        raise errors.InputError(
            place,
            "exclusive.nodeLabel",
            problem=f'"{pool.node_label}" is not the key of a label',
            remedy="e.g. graphsched.io/pool",
        )
    if _LABEL_VALUE.fullmatch(pool.value) is None:
        raise errors.InputError(
            place,
            "exclusive.value",
            problem=f'"{pool.value}" is not the value of a label',
            remedy="e.g. graph-scheduler",
        )
