"""One piece of advice, from the call to a known end: a pod is tied to a node and let go, for another scheduler to bind.

Comes in: a `bind.Order`, the decision that a gated pod runs on a node. Goes out: a `bind.Outcome`. Nothing is bound
here. One PATCH does both: it adds the node's name to every term of the pod's required node affinity, so that
kube-scheduler looks at that node alone, and it takes our gate away. Between the two there is no moment.

- The pod is read first, and the patch holds for exactly what was read (uid and resourceVersion): whoever changed the
  pod meanwhile makes it a conflict, after which the pod is read again.
- Affinity of a gated pod may only get narrower: terms gain requirements, none goes. So what was decided on must still
  be what the pod asks for; else it would be tied for ever to a node that it can not use.
- Right before each call the node is looked at once more (`Order.look`), as before a binding.
- An answer that was lost is never taken for a no: the next round begins with reading, until somebody answers.

Invariant: `ADVISED` means that the pod is tied to this very node and not held by our gate any more; every other end
means that this order did not do it.
"""

from __future__ import annotations

import functools
import logging
import random
from typing import Any

import msgspec

from graphsched.action import bind, calls
from graphsched.base.kit import backoff, tasks
from graphsched.base.kube import pods as kube_pods, wire
from graphsched.base.values import errors

_log = logging.getLogger(__name__)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NAME = "metadata.name"

_Manifest = dict[str, Any]


def carrier(gate: str) -> bind.Carrier:
    """What carries out orders by advice to the pods that this gate holds."""
    return functools.partial(advise, gate=gate)


async def advise(
    client: calls.Client, order: bind.Order, *, gate: str, deadline_s: float, rng: random.Random
) -> bind.Outcome:
    """Carry out the order to a known end. `deadline_s` bounds each call, not the whole.

    Raises:
        CancelledError: The program ends; the order's end is then unknown.
    """
    waits = backoff.Backoff(first_s=bind.PAUSE_FIRST_S, most_s=bind.PAUSE_MOST_S, rng=rng)
    last, pinned = "", False
    for calls_made in range(bind.TRIES_MAX + 1):
        found = await _look(client, order, gate, deadline_s=deadline_s, waits=waits)
        if isinstance(found, bind.Outcome):
            return found
        if calls_made == bind.TRIES_MAX:
            break
        goes = order.look(order, pinned=pinned)
        if order.seen is not None:
            # The look brought news of the pod itself.
            continue
        if not goes:
            return bind.Outcome(order, bind.End.MOVED, detail=f"{order.node} does not take it any more")
        try:
            await client.patch(
                calls.pod_path(order.pod), patch(found, node=order.node, gate=gate), kind="merge", deadline_s=deadline_s
            )
        except errors.NotFoundError:
            return bind.Outcome(order, bind.End.GONE, detail="the pod was deleted")
        except errors.ClusterError as error:
            last = str(error)
            pinned = pinned or isinstance(error, errors.UnreachableError)
            if not calls.passing(error) and not isinstance(error, errors.ConflictError):
                end = bind.End.REFUSED if 400 <= error.status < 500 and error.status != 401 else bind.End.FAILED
                return bind.Outcome(order, end, detail=last, retry_after_s=error.retry_after_s)
            await tasks.pause(waits.next(at_least_s=error.retry_after_s), until=order.news)
        else:
            return bind.Outcome(order, bind.End.ADVISED, order.node)
    return bind.Outcome(order, bind.End.FAILED, detail=f"given up after {bind.TRIES_MAX} calls: {last}")


def patch(pod: _Manifest, *, node: str, gate: str) -> bytes:
    """The merge patch that ties this pod, as it was read, to the node and takes the gate away.

    A term without any requirement matches nothing and may not gain one, so it stays as it is.
    """
    pin = {"key": _NAME, "operator": "In", "values": [node]}
    terms = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), pin]} if _demands(term) else term
        for term in _terms(pod)
    ]
    gates = [each for each in pod["spec"].get("schedulingGates") or () if each["name"] != gate]
    metadata = pod["metadata"]
    return msgspec.json.encode(
        {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "spec": {
                "schedulingGates": gates or None,
                "affinity": {
                    "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms or [{"matchFields": [pin]}]}},
                },
            },
        }
    )


async def _look(
    client: calls.Client, order: bind.Order, gate: str, *, deadline_s: float, waits: backoff.Backoff
) -> bind.Outcome | _Manifest:
    """Read the pod until somebody answers: the end of the order, or the pod as it still waits for it."""
    told = False
    while True:
        seen = order.seen
        if seen is not None:
            # A pod that the watch shows on the node was tied to it before.
            advised = seen.end is bind.End.BOUND
            return msgspec.structs.replace(seen, end=bind.End.ADVISED) if advised else seen
        retry_after_s = 0.0
        try:
            raw = await client.get(calls.pod_path(order.pod), deadline_s=deadline_s)
            pod = kube_pods.pod(wire.POD.decode(raw))
            return _judge(order, gate, pod.spec == order.pod.spec, msgspec.json.decode(raw))
        except errors.NotFoundError:
            return bind.Outcome(order, bind.End.GONE, detail="the pod was deleted")
        except (errors.ClusterError, errors.InputError) as error:
            if isinstance(error, errors.ClusterError):
                retry_after_s = error.retry_after_s
            if not told:
                _log.warning("how %s is now is not known yet: %s", order.pod.full_name, error)
            told = True
        await tasks.pause(waits.next(at_least_s=retry_after_s), until=order.news)


def _judge(order: bind.Order, gate: str, unchanged: bool, pod: _Manifest) -> bind.Outcome | _Manifest:  # noqa: FBT001
    metadata, spec = pod["metadata"], pod["spec"]
    if metadata.get("uid") != order.pod.uid:
        return bind.Outcome(order, bind.End.GONE, detail="another pod has its name now")
    node = spec.get("nodeName", "")
    if node == order.node:
        return bind.Outcome(order, bind.End.ADVISED, node)
    if node:
        return bind.Outcome(order, bind.End.CONFLICT, node, detail=f"somebody else bound it to {node}")
    if metadata.get("deletionTimestamp"):
        return bind.Outcome(order, bind.End.GONE, detail="the pod is being deleted")
    gates = [each["name"] for each in spec.get("schedulingGates") or ()]
    if gate not in gates:
        if _tied(pod, order.node):
            return bind.Outcome(order, bind.End.ADVISED, order.node)
        return bind.Outcome(order, bind.End.CONFLICT, detail="somebody else took the gate away")
    if len(gates) > 1:
        return bind.Outcome(order, bind.End.CONFLICT, detail="the pod is gated by others, too")
    if not unchanged:
        return bind.Outcome(order, bind.End.CONFLICT, detail="the pod has changed since it was decided on")
    return pod


def _terms(pod: _Manifest) -> list[_Manifest]:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    return (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []


def _demands(term: _Manifest) -> bool:
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _tied(pod: _Manifest, node: str) -> bool:
    """Whether every term that can match at all names this node."""
    terms = [term for term in _terms(pod) if _demands(term)]
    return bool(terms) and all(
        any(
            (field.get("key"), field.get("operator"), field.get("values")) == (_NAME, "In", [node])
            for field in term.get("matchFields") or ()
        )
        for term in terms
    )
