"""One binding, from the call to a known end.

Comes in: an `Order`, the decision that a pod runs on a node. Goes out: an `Outcome`. `dispatch` runs many of these,
`app/loop` turns outcomes into patches. Another scheduler shares the cluster, calls get lost, servers die; so:

- the pod's UID is the precondition, never its resourceVersion, which our own status patch would make stale;
- an answer that was lost is never taken for a no: the pod is read, again and again until somebody answers, and the
  order stays promised meanwhile. If it turns out unbound, the same node is asked for again: a late first call and the
  second one can only agree;
- what the watch shows in the meantime (`Order.saw`) ends the waiting as well;
- right before each call whoever gave the order is asked whether the node still takes the pod (`Order.look`), and may
  name another one; not after a call whose answer was lost, as that one may still arrive.

Invariant: `BOUND` means that the API server said so; every other end means that this order did not and will not bind.
`ADVISED` is the end of orders that `advise` carries out; nothing here gives it.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import random
import typing

import msgspec

from graphsched.action import calls
from graphsched.base.kit import backoff, tasks
from graphsched.base.kube import wire
from graphsched.base.values import errors, pods

_log = logging.getLogger(__name__)

TRIES_MAX = 4
"""Binding calls of one order; what the server keeps turning away goes back to the queue, to be decided anew."""
LATE_S = 60.0
"""A call without an answer may take effect for so long after this side gave up on it: API servers end what they work on
after a minute (`--request-timeout`)."""
PAUSE_FIRST_S = 0.1
PAUSE_MOST_S = 5.0


class End(enum.StrEnum):
    """How an order ended; the values are those of the metric `graphsched_bind_total`."""

    BOUND = "bound"
    """The pod runs on the node."""
    ADVISED = "advised"
    """The pod is tied to the node and free to go: another scheduler binds it."""
    GONE = "gone"
    """The pod was deleted, is being deleted, or was replaced by another of its name."""
    CONFLICT = "conflict"
    """Somebody else bound it, or gated it: the watch will show."""
    REFUSED = "refused"
    """The API server or its admission said no, and most likely will again."""
    FAILED = "failed"
    """It did not work, this time."""
    MOVED = "moved"
    """Just before the call no candidate took the pod any more, so it was not made."""
    NOTED = "noted"
    """Nothing was to be done but to remember it."""


PLACED = frozenset({End.BOUND, End.ADVISED, End.NOTED})
"""How orders end well."""


class _Target(msgspec.Struct, frozen=True, gc=False):
    name: str
    kind: str = "Node"
    apiVersion: str = "v1"  # noqa: N815  the API's spelling


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str
    uid: str


class _Binding(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata
    target: _Target
    kind: str = "Binding"
    apiVersion: str = "v1"  # noqa: N815  the API's spelling


class _Assignment(wire.Body, frozen=True, gc=False):
    node_name: str = ""
    scheduling_gates: list[msgspec.Raw] | None = None


class _Pod(wire.Body, frozen=True, gc=False):
    metadata: wire.Metadata = wire.Metadata()
    spec: _Assignment = _Assignment()


_encoder = msgspec.json.Encoder()
_read = wire.Codec("Pod", _Pod)


class Look(typing.Protocol):
    """Looks at the node of an order once more; it may give the order another one."""

    def __call__(self, order: Order, *, pinned: bool) -> bool:
        """Whether to go on. `pinned`: a call to this node may still take effect, so no other may be named."""


def unseen(order: Order, *, pinned: bool) -> bool:  # noqa: ARG001
    """Go on without a look."""
    return True


class Order:
    """Bind this pod to this node. Made by the loop, which also tells it what the watch shows meanwhile.

    Attributes:
        pod: As it was decided on.
        node: Name of the node; `look` may change it.
        asked: When it was handed over, on the loop's clock.
        after: Something that must be over before the call goes out, or None.
        look: Called right before each call, without an await in between.
        lingers: Whether it only waits until no call of its own can be carried out any more.
    """

    __slots__ = ("_node_seen", "after", "asked", "lingers", "look", "news", "node", "pod")

    def __init__(
        self,
        pod: pods.Pod,
        node: str,
        *,
        asked: float,
        after: asyncio.Future[None] | None = None,
        look: Look = unseen,
    ) -> None:
        self.pod = pod
        self.node = node
        self.asked = asked
        self.after = after
        self.look = look
        self.lingers = False
        self.news = asyncio.Event()
        self._node_seen: str | None = None

    def saw(self, node: str | None) -> None:
        """The watch shows the pod bound to `node`, or shows that it is gone (None)."""
        self._node_seen = node
        self.news.set()

    @property
    def seen(self) -> Outcome | None:
        """The end as the watch shows it; None while it shows the pod waiting."""
        if not self.news.is_set():
            return None
        if self._node_seen is None:
            return Outcome(self, End.GONE, detail="the pod was deleted")
        return _elsewhere(self, self._node_seen)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How an order ended.

    Attributes:
        order: Which.
        end: How.
        node: Where the pod is bound, as far as is known; empty when it is not.
        detail: What a log line should say; empty for the usual end.
        retry_after_s: What the API server asked for.
    """

    order: Order
    end: End
    node: str = ""
    detail: str = ""
    retry_after_s: float = 0.0


class Carrier(typing.Protocol):
    """Carries out one order to a known end: by a binding (`bind`), or otherwise."""

    async def __call__(self, client: calls.Client, order: Order, *, deadline_s: float, rng: random.Random) -> Outcome:
        """As `bind` does."""
        ...


def body(pod: pods.Pod, node: str) -> bytes:
    """The Binding as JSON."""
    return _encoder.encode(_Binding(_Metadata(pod.name, pod.namespace, pod.uid), _Target(node)))


async def bind(client: calls.Client, order: Order, *, deadline_s: float, rng: random.Random) -> Outcome:
    """Carry out the order to a known end. `deadline_s` bounds each call, not the whole.

    Raises:
        CancelledError: The program ends; the order's end is then unknown.
    """
    if order.after is not None:
        await asyncio.wait((order.after,))
    waits = backoff.Backoff(first_s=PAUSE_FIRST_S, most_s=PAUSE_MOST_S, rng=rng)
    path = calls.pod_path(order.pod, "binding")
    last, pinned, late_until = "", False, 0.0
    for _ in range(TRIES_MAX):
        goes = order.look(order, pinned=pinned)
        # The look may have brought news of the pod itself.
        if (seen := order.seen) is not None:
            return seen
        if not goes:
            moved = Outcome(order, End.MOVED, detail=f"{order.node} does not take it any more")
            return await _outlast(client, order, moved, until=late_until, deadline_s=deadline_s, waits=waits)
        try:
            await client.post(path, body(order.pod, order.node), deadline_s=deadline_s)
            return Outcome(order, End.BOUND, order.node)
        except errors.NotFoundError:
            return Outcome(order, End.GONE, detail="the pod was deleted")
        except errors.ConflictError as error:
            last, retry_after_s = str(error), error.retry_after_s
            found = await _look(client, order, deadline_s=deadline_s, waits=waits)
        except errors.ClusterError as error:
            last, retry_after_s = str(error), error.retry_after_s
            if isinstance(error, errors.UnreachableError):
                pinned, late_until = True, asyncio.get_running_loop().time() + LATE_S
                found = await _look(client, order, deadline_s=deadline_s, waits=waits)
            elif error.status in calls.BUSY:
                found = None
            else:
                end = End.REFUSED if 400 <= error.status < 500 and error.status != 401 else End.FAILED
                said = Outcome(order, end, detail=last, retry_after_s=retry_after_s)
                return await _outlast(client, order, said, until=late_until, deadline_s=deadline_s, waits=waits)
        if found is not None:
            return found
        await tasks.pause(waits.next(at_least_s=retry_after_s), until=order.news)
    given_up = order.seen or Outcome(order, End.FAILED, detail=f"given up after {TRIES_MAX} calls: {last}")
    return await _outlast(client, order, given_up, until=late_until, deadline_s=deadline_s, waits=waits)


async def _outlast(
    client: calls.Client, order: Order, end: Outcome, *, until: float, deadline_s: float, waits: backoff.Backoff
) -> Outcome:
    """Keep the room until no earlier call can take effect any more; then `end`, unless one of them has."""
    loop = asyncio.get_running_loop()
    order.lingers = True
    while end.end in {End.MOVED, End.FAILED, End.REFUSED} and loop.time() < until:
        await tasks.pause(min(waits.next(), until - loop.time()), until=order.news)
        found = await _look(client, order, deadline_s=deadline_s, waits=waits)
        if found is not None:
            return found
    return end


async def _look(client: calls.Client, order: Order, *, deadline_s: float, waits: backoff.Backoff) -> Outcome | None:
    """Read the pod until somebody answers; None when it still waits for a node, so that the call may be repeated."""
    told = False
    while True:
        if (seen := order.seen) is not None:
            return seen
        retry_after_s = 0.0
        try:
            pod = _read.decode(await client.get(calls.pod_path(order.pod), deadline_s=deadline_s))
        except errors.NotFoundError:
            return Outcome(order, End.GONE, detail="the pod was deleted")
        except (errors.ClusterError, errors.InputError) as error:
            if isinstance(error, errors.ClusterError):
                retry_after_s = error.retry_after_s
            if not told:
                _log.warning("whether %s was bound is not known yet: %s", order.pod.full_name, error)
            told = True
        else:
            return _judge(order, pod)
        # The answer is still out there, whatever the reason that we can not see it.
        await tasks.pause(waits.next(at_least_s=retry_after_s), until=order.news)


def _judge(order: Order, pod: _Pod) -> Outcome | None:
    if pod.metadata.uid != order.pod.uid:
        return Outcome(order, End.GONE, detail="another pod has its name now")
    if pod.spec.node_name:
        return _elsewhere(order, pod.spec.node_name)
    if pod.metadata.deletion_timestamp is not None:
        return Outcome(order, End.GONE, detail="the pod is being deleted")
    if pod.spec.scheduling_gates:
        return Outcome(order, End.CONFLICT, detail="the pod is gated")
    return None


def _elsewhere(order: Order, node: str) -> Outcome:
    if node == order.node:
        return Outcome(order, End.BOUND, node)
    return Outcome(order, End.CONFLICT, node, detail=f"somebody else bound it to {node}")
