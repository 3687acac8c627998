"""Which mode is which: what the loop is given when it is made, so that nobody asks for the mode afterwards.

Comes in: settings and parts that every mode has. Goes out: the parts that differ. What differs in the decision itself
is in the profile (`Settings.decider`), since files are judged by it as well.
"""

from __future__ import annotations

from graphsched.app import intake, pools, settings as configuration
from graphsched.base.values import errors
from graphsched.graph import store as stores
from graphsched.observe import metrics as meters


def require(settings: configuration.Settings) -> None:
    """Raise if the mode is not available.

    Raises:
        InputError: It is not.
    """
    if settings.mode in {"advise", "shadow"}:
        raise errors.InputError("mode", problem=f'"{settings.mode}" is not available yet', remedy="use shared")


def onlookers(
    settings: configuration.Settings, store: stores.Store, metrics: meters.Metrics, races: intake.Onlooker
) -> tuple[intake.Onlooker, ...]:
    """Those who are told what happens to nodes and pods; `races` in every mode."""
    if settings.mode != "exclusive":
        return (races,)
    wanted = settings.exclusive
    pool = pools.Pool((wanted.node_label, wanted.value), scheduler=settings.scheduler_name, store=store)
    metrics.refresh_with(lambda: metrics.set_leaks(open_nodes=len(pool.open_nodes), guests=len(pool.guests)))
    return (races, pool)
