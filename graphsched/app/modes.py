"""Which mode is which: what the loop is given when it is made, so that nobody asks for the mode afterwards.

Comes in: settings and parts that every mode has. Goes out: the parts that differ. What differs in the decision itself
is in the profile (`Settings.decider`), since files are judged by it as well.
"""

from __future__ import annotations

import random
import typing
from collections.abc import Callable

from graphsched.action import advise, bind, calls, conditions, dispatch, events, outlet
from graphsched.app import (
    advising,
    backlog,
    intake,
    pools,
    promises,
    settings as configuration,
    shadow,
    shadowing,
    strategies,
)
from graphsched.base.kit import clock as clocks
from graphsched.base.values import keys
from graphsched.decision import cycle
from graphsched.graph import store as stores
from graphsched.observe import metrics as meters
from graphsched.sources import inbox as inboxes, reflector


class Making(typing.NamedTuple):
    """What there is when the mode's own parts are made."""

    settings: configuration.Settings
    writer: calls.Client
    instance: str
    decider: cycle.Decider
    store: stores.Store
    queue: backlog.Backlog
    kept: promises.Promises
    inbox: inboxes.Inbox
    meters: meters.Metrics
    clock: clocks.Clock
    rng: random.Random
    version: Callable[[keys.VertexKey, str], str]

    def dispatcher(self, carrier: bind.Carrier) -> dispatch.Dispatcher:
        """Carries out orders by calls."""
        return dispatch.Dispatcher(
            self.writer,
            places=self.settings.binding.concurrency,
            deadline_s=self.settings.client.timeout_seconds,
            rng=self.rng,
            ready=self.inbox.ready,
            carrier=carrier,
        )

    def conditions(self) -> conditions.Conditions:
        """Writes conditions."""
        rate = self.settings.conditions
        return conditions.Conditions(
            self.writer,
            rate=outlet.Rate(per_second=rate.per_second, burst=rate.burst),
            clock=self.clock,
            rng=self.rng,
            version=self.version,
            on_end=self.meters.condition,
        )

    def events(self) -> events.Events:
        """Writes events."""
        name, rate = self.settings.scheduler_name, self.settings.events
        return events.Events(
            self.writer,
            controller=name,
            instance=self.instance,
            rate=outlet.Rate(per_second=rate.per_second, burst=rate.burst),
            length_max=rate.queue_length,
            clock=self.clock,
            rng=self.rng,
            on_end=self.meters.event,
        )


def _binding(making: Making) -> strategies.Means:
    """Modes `shared` and `exclusive`: we bind the pods that name us."""
    told = making.events()
    return strategies.Means(
        strategy=strategies.Binding(making.settings.scheduler_name, told),
        orders=making.dispatcher(bind.bind),
        conditions=making.conditions(),
        events=told,
    )


def _advising(making: Making) -> strategies.Means:
    """Mode `advise`: gated pods are tied to a node and let go. Their condition is the other scheduler's."""
    told, chosen = making.events(), making.settings.advise
    strategy = advising.Advising(
        gate=chosen.gate,
        give_up_s=chosen.give_up_seconds,
        store=making.store,
        kept=making.kept,
        queue=making.queue,
        events=told,
        meters=making.meters,
        clock=making.clock,
        wake=making.inbox.ready,
    )
    orders = making.dispatcher(advise.carrier(chosen.gate))
    return strategies.Means(strategy=strategy, orders=orders, conditions=strategies.NoConditions(), events=told)


def _shadowing(making: Making) -> strategies.Means:
    """Mode `shadow`: nothing gets the client but the watches."""
    chosen, clock, begun = making.settings.shadow, making.clock, making.clock.monotonic()
    tally = shadow.Tally(chosen.scheduler_name, kept=chosen.kept, meters=making.meters.modes)
    strategy = shadowing.Shadowing(
        scheduler=chosen.scheduler_name,
        settle_s=chosen.settle_seconds,
        places=making.settings.binding.concurrency,
        decider=making.decider,
        store=making.store,
        kept=making.kept,
        queue=making.queue,
        tally=tally,
        clock=clock,
        ready=making.inbox.ready,
    )
    making.meters.refresh_with(
        lambda: making.meters.modes.set_waiting(
            {
                "undecided" if result is None else result.value: count
                for result, count in strategy.waiting(clock.monotonic()).items()
            }
        )
    )
    return strategies.Means(
        strategy=strategy,
        orders=strategy,
        conditions=shadowing.Refusals(strategy.say),
        events=strategies.NoEvents(),
        begin=strategy.begin,
        shadow=lambda limit: tally.report(
            strategy.waiting(clock.monotonic()), seconds=clock.monotonic() - begun, limit=limit
        ),
    )


_MAKERS: dict[str, Callable[[Making], strategies.Means]] = {
    "shared": _binding,
    "exclusive": _binding,
    "advise": _advising,
    "shadow": _shadowing,
}


def means(making: Making) -> strategies.Means:
    """What the mode brings along."""
    return _MAKERS[making.settings.mode](making)


def served(settings: configuration.Settings) -> str:
    """Whose pods are decided on, in words."""
    match settings.mode:
        case "advise":
            return f"pods with the scheduling gate {settings.advise.gate}"
        case "shadow":
            return f"nobody, watching pods with schedulerName {settings.shadow.scheduler_name}"
        case _:
            return f"pods with schedulerName {settings.scheduler_name}"


def events_a_patch(settings: configuration.Settings) -> int:
    """How many events of a watch may come as one change; the shadow looks at the graph just before each."""
    return 1 if settings.mode == "shadow" else reflector.ROWS_MAX


def onlookers(
    settings: configuration.Settings,
    store: stores.Store,
    metrics: meters.Metrics,
    races: intake.Onlooker,
    rejections: intake.Onlooker,
    neighbours: intake.Onlooker,
) -> tuple[intake.Onlooker, ...]:
    """Those who are told what happens to nodes and pods: `rejections`, who reads pods, where pods of ours are bound;
    `neighbours` where others bind to the same nodes.
    """
    if settings.mode in {"advise", "shadow"}:
        return (races,)
    if settings.mode == "shared":
        return (races, rejections, neighbours)
    wanted = settings.exclusive
    pool = pools.Pool((wanted.node_label, wanted.value), scheduler=settings.scheduler_name, store=store)
    metrics.refresh_with(lambda: metrics.set_leaks(open_nodes=len(pool.open_nodes), guests=len(pool.guests)))
    return (races, rejections, pool)
