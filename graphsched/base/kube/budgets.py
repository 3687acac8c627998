"""What an operator grants of a node, read from its annotations.

Decoded annotations and what the kubelet offers come in, a budget and the I/O operations go out; `nodes` puts
them into the node. What each annotation means stands in docs/graph.md.
"""

from __future__ import annotations

import functools
import re

import msgspec

from graphsched.base.kube import annotated, requests, wire
from graphsched.base.values import errors, nodes, pods, quantities

HOLDERS_MAX = 64
"""Names that one node can keep something for."""
TEXT_MAX = 16_384
"""Characters of the annotation that names them."""
_FIELD = "metadata.annotations.graphsched.io/"
_WHOLE = re.compile(r"[0-9]{1,18}", re.ASCII)
_HOLDER = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_READ = msgspec.json.Decoder(dict[str, dict[str, str | int | float]])


def iops(noted: annotated.Annotations) -> int | None:
    """I/O operations a second; None where nothing is said.

    Raises:
        InputError: It is no whole number.
    """
    return None if noted.iops is None else _whole(noted.iops, "iops", remedy="operations a second, e.g. 4000")


def budget(noted: annotated.Annotations, capacity: wire.Resources | None, allocatable: nodes.Amounts) -> nodes.Budget:
    """What is granted.

    Raises:
        InputError: An annotation is not what it should be, or a quantity of the capacity is none.
    """
    ceilings: dict[str, int] = {}
    if noted.cpu_quota is not None:
        ceilings[nodes.CPU] = _quantity(noted.cpu_quota, "cpu-quota", milli=True)
    if noted.memory_limit_mb is not None:
        mebibytes = _whole(noted.memory_limit_mb, "memory-limit-mb", remedy="mebibytes as a whole number, e.g. 16384")
        ceilings[nodes.MEMORY] = mebibytes << 20
    operations = iops(noted)
    if operations is not None and nodes.IOPS in dict(allocatable):
        ceilings[nodes.IOPS] = operations
    reserved = () if noted.reserved is None else _reserved(noted.reserved)
    return nodes.Budget(requests.offered(capacity, "status.capacity"), tuple(sorted(ceilings.items())), reserved)


def with_iops(noted: annotated.Annotations, demand: pods.Demand, held: pods.Demand) -> tuple[pods.Demand, pods.Demand]:
    """What a pod asks for and what it holds, with the I/O operations that its annotation asks for; where its containers
    request them as a resource, that counts instead.

    Raises:
        InputError: The annotation is no whole number.
    """
    operations = iops(noted)
    if not operations or nodes.IOPS in dict(demand.amounts):
        return demand, held
    more = ((nodes.IOPS, operations),)
    asked = msgspec.structs.replace(demand, amounts=tuple(sorted(demand.amounts + more)))
    if held is demand:
        return asked, asked
    return asked, msgspec.structs.replace(held, amounts=tuple(sorted(held.amounts + more)))


@functools.lru_cache(maxsize=4096)
def _reserved(text: str) -> nodes.Reservations:
    field = _FIELD + "reserved"
    remedy = 'e.g. {"team-a": {"cpu": "2", "memory": "4Gi"}}'
    if len(text) > TEXT_MAX:
        raise errors.InputError(field, problem=f"has more than {TEXT_MAX} characters", remedy="name fewer holders")
    try:
        holders = _READ.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise errors.InputError(field, problem="is not JSON of amounts by holder", remedy=remedy) from error
    if len(holders) > HOLDERS_MAX:
        raise errors.InputError(field, problem=f"has more than {HOLDERS_MAX} holders", remedy="name fewer")
    for holder in holders:
        require_holder(holder, field)
    return tuple((holder, kept(amounts, f"{field}.{holder}")) for holder, amounts in sorted(holders.items()))


def require_holder(text: str, field: str) -> None:
    """Raise where nobody can be called so.

    Raises:
        InputError: It is neither a namespace nor `namespace/workload`; its place is `field`.
    """
    if _HOLDER.fullmatch(text) is None:
        raise errors.InputError(
            field, problem=f'"{text[:100]}" is no holder', remedy="a namespace, or namespace/workload"
        )


def kept(resources: wire.Resources, field: str) -> nodes.Amounts:
    """What is kept for somebody; a zero keeps nothing.

    Raises:
        InputError: A name is that of no resource, or a quantity is none, or negative; its place begins with `field`.
    """
    for name in resources:
        if name != nodes.PODS and not requests.counted(name):
            raise errors.InputError(field, problem=f'"{name[:100]}" is no resource', remedy="e.g. cpu, memory, pods")
    return tuple((name, amount) for name, amount in requests.offered(resources, field) if amount)


def _quantity(text: str, name: str, *, milli: bool) -> int:
    try:
        amount = quantities.parse_milli(text) if milli else quantities.parse_units(text)
    except errors.QuantityError as error:
        raise error.within(_FIELD + name) from error
    if amount < 0:
        raise errors.InputError(_FIELD + name, problem=f'"{text}" is negative', remedy="use 0 or more")
    return amount


def _whole(text: str, name: str, *, remedy: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise errors.InputError(_FIELD + name, problem=f'"{text[:100]}" is no whole number', remedy=remedy)
    return int(text)
