"""How much a pod takes, as kube-scheduler counts it.

The spec and status of a pod come in, two `Demand`s go out: what the pod asks for while it is pending, and what it is
counted for on its node, where a resize in flight counts with the greater of what was and what will be. `pods` puts
them into values; nobody else adds up containers.

Amounts are thousandths of a unit, exact integers, until the very end: rounding up each container first would count
three containers of 100 milli-bytes as three bytes.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Mapping

from graphsched.base.kube import wire
from graphsched.base.values import errors, nodes, pods, quantities

Milli = dict[str, int]
"""Resource name → thousandths of a unit. A present 0 differs from an absent name: it stops a default."""

DEFAULT_CPU = 100
"""milli-CPU that the allocation score assumes for a container that names none."""
DEFAULT_MEMORY = 200 << 20
"""Bytes that the allocation score assumes for a container that names none."""
_DEFAULTS: Milli = {nodes.CPU: DEFAULT_CPU, nodes.MEMORY: DEFAULT_MEMORY * 1000}
_NO_DEFAULTS: Milli = {}
_UNREPORTED = ("", wire.ContainerStatus())

_HUGE_PAGES = "hugepages-"
_NATIVE_NAMESPACE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@functools.lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """Whether the scheduler counts this resource beside CPU, memory and ephemeral storage: extended resources, huge
    pages, resources prefixed with kubernetes.io/ and attachable volumes.
    """
    if name.startswith((_HUGE_PAGES, "attachable-volumes-")) or _NATIVE_NAMESPACE in name:
        return True
    prefix, slash, rest = name.partition("/")
    if not slash or name.startswith(_QUOTA_PREFIX):
        return False
    prefix = _QUOTA_PREFIX + prefix
    return (
        len(prefix) <= 253
        and _PREFIX.fullmatch(prefix) is not None
        and len(rest) <= 63
        and _NAME.fullmatch(rest) is not None
    )


@functools.lru_cache(maxsize=4096)
def counted(name: str) -> bool:
    """Whether a pod's request for this resource counts at all."""
    return name in {nodes.CPU, nodes.MEMORY, nodes.EPHEMERAL_STORAGE} or is_scalar(name)


def is_extended(name: str) -> bool:
    """Whether it is a resource that devices are counted in, which come whole."""
    return "/" in name and _NATIVE_NAMESPACE not in name and is_scalar(name)


def pod_level(name: str) -> bool:
    """Whether a request of the pod as a whole may name this resource."""
    return name in {nodes.CPU, nodes.MEMORY} or name.startswith(_HUGE_PAGES)


def parse(resources: wire.Resources | None, field: str) -> Milli:
    """The resources that count, in thousandths.

    Raises:
        InputError: A quantity is none, or negative; its place begins with `field`.
    """
    return (
        {name: milli(text, f"{field}.{name}") for name, text in resources.items() if counted(name)} if resources else {}
    )


def offered(resources: wire.Resources | None, field: str) -> nodes.Amounts:
    """What a node has or offers of the resources that count, and of pods, zeros as well.

    Raises:
        InputError: A quantity is none, or negative; its place begins with `field`.
    """
    return amounts(
        {
            name: milli(text, f"{field}.{name}")
            for name, text in (resources or {}).items()
            if name == nodes.PODS or counted(name)
        },
        keep_zeros=True,
    )


def milli(text: wire.Quantity, field: str) -> int:
    """A quantity in thousandths; whole units where thousandths do not fit 64 bits.

    Raises:
        InputError: It is no quantity, or negative.
    """
    try:
        amount = quantities.parse_milli(text)
    except errors.QuantityError:
        try:
            amount = quantities.parse_units(text) * 1000
        except errors.QuantityError as error:
            raise error.within(field) from error
    if amount < 0:
        raise errors.InputError(field, problem=f'"{text}" is negative', remedy="use 0 or more")
    return amount


def amounts(totals: Mapping[str, int], *, keep_zeros: bool = False) -> nodes.Amounts:
    """Thousandths as values hold them: milli-CPU, whole units rounded up of everything else, sorted by name."""
    return tuple(
        (name, amount if name == nodes.CPU else -(-amount // 1000))
        for name, amount in sorted(totals.items())
        if amount or keep_zeros
    )


def measure(spec: wire.PodSpec, status: wire.PodStatus) -> tuple[pods.Demand, pods.Demand]:
    """What the pod asks for, and what it holds on its node.

    The first follows the spec alone, and its `scored_*` leave out requests of the pod as a whole, as the scorer does.
    The second counts a resize in flight and honours pod-level requests in all parts. They are one object if equal.

    Raises:
        InputError: A quantity is none, or negative.
    """
    containers = _containers(spec)
    asked = parse(spec.resources.requests if spec.resources else None, "spec.resources.requests")
    whole = {name: amount for name, amount in asked.items() if pod_level(name)}
    overhead = parse(spec.overhead, "spec.overhead")
    demand = _demand(
        _add({**_aggregate(containers, _NO_DEFAULTS), **whole}, overhead),
        _add(_aggregate(containers, _DEFAULTS), overhead),
    )
    resized = _resized_containers(containers, status)
    if resized is containers and not whole:
        return demand, demand
    if whole and status.resources is not None:
        whole = _resized_pod(whole, status)
    taken = _add({**_aggregate(resized, _NO_DEFAULTS), **whole}, overhead)
    defaults = {name: amount for name, amount in _DEFAULTS.items() if name not in taken} if whole else _DEFAULTS
    held = _demand(taken, _add({**_aggregate(resized, defaults), **whole}, overhead))
    return demand, demand if held == demand else held


def sum_containers(spec: wire.PodSpec, *, limits: bool = False) -> Milli:
    """The requests (or limits) of all containers together, without those of the pod as a whole and without overhead.

    Raises:
        InputError: A quantity is none, or negative.
    """
    return _aggregate(_containers(spec, limits=limits), _NO_DEFAULTS)


class _Container(typing.NamedTuple):
    """The requests of one container; an init container is either a sidecar or `initial`."""

    name: str
    requests: Milli
    initial: bool = False
    sidecar: bool = False


def _containers(spec: wire.PodSpec, *, limits: bool = False) -> list[_Container]:
    """Regular containers first, then init containers in their order."""
    found = [
        _Container(container.name, _requests(container, f"spec.containers[{index}]", limits=limits))
        for index, container in enumerate(spec.containers or ())
    ]
    for index, container in enumerate(spec.init_containers or ()):
        requests = _requests(container, f"spec.initContainers[{index}]", limits=limits)
        found.append(_Container(container.name, requests, not container.sidecar, container.sidecar))
    return found


def _requests(container: wire.Container, field: str, *, limits: bool) -> Milli:
    if container.resources is None:
        return {}
    if limits:
        return parse(container.resources.limits, f"{field}.resources.limits")
    return parse(container.resources.requests, f"{field}.resources.requests")


def _aggregate(containers: list[_Container], defaults: Milli) -> Milli:
    """What runs at once at most: regular containers and sidecars, or an init container beside earlier sidecars."""
    running: Milli = {}
    sidecars: Milli = {}
    peak: Milli = {}
    for container in containers:
        requests = {**defaults, **container.requests} if defaults else container.requests
        if container.initial:
            _raise_to(peak, _add(dict(sidecars), requests))
            continue
        _add(running, requests)
        if container.sidecar:
            _raise_to(peak, _add(sidecars, requests))
    _raise_to(running, peak)
    return running


def _resized_containers(containers: list[_Container], status: wire.PodStatus) -> list[_Container]:
    """The containers with a resize in flight counted; the same list when the status says nothing about resources."""
    statuses: dict[str, tuple[str, wire.ContainerStatus]] = {}
    for field, entries in (
        ("status.containerStatuses", status.container_statuses),
        ("status.initContainerStatuses", status.init_container_statuses),
    ):
        for index, entry in enumerate(entries or ()):
            statuses[entry.name] = (f"{field}[{index}]", entry)
    if not any(entry.resources is not None for _, entry in statuses.values()):
        return containers
    infeasible = resize_infeasible(status)
    resized = []
    for container in containers:
        field, entry = statuses.get(container.name, _UNREPORTED)
        if container.initial or entry.resources is None:
            resized.append(container)
            continue
        requests = {} if infeasible else dict(container.requests)
        _raise_to(requests, parse(entry.resources.requests, f"{field}.resources.requests"))
        _raise_to(requests, parse(entry.allocated_resources, f"{field}.allocatedResources"))
        resized.append(container._replace(requests=requests))
    return resized


def _resized_pod(whole: Milli, status: wire.PodStatus) -> Milli:
    """Pod-level requests with a resize in flight counted; only the resources that the spec names."""
    effective = {} if resize_infeasible(status) else dict(whole)
    _raise_to(effective, parse(status.resources.requests if status.resources else None, "status.resources.requests"))
    _raise_to(effective, parse(status.allocated_resources, "status.allocatedResources"))
    return {name: effective.get(name, 0) for name in whole}


def resize_infeasible(status: wire.PodStatus) -> bool:
    """Whether the node has declared the pod's resize impossible, so that the spec is a wish that never comes true."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _demand(taken: Milli, scored: Milli) -> pods.Demand:
    return pods.Demand(
        amounts=amounts(taken),
        scored_cpu=scored.get(nodes.CPU, 0),
        scored_memory=-(-scored.get(nodes.MEMORY, 0) // 1000),
    )


def _add(total: Milli, more: Mapping[str, int]) -> Milli:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount
    return total


def _raise_to(total: Milli, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        if amount > total.get(name, -1):
            total[name] = amount
