"""The composition root of the live scheduler: every part is made here, once, and handed to those who need it.

Comes in: settings and a client. Goes out: a `Program`, nothing of which is running yet. `run` starts and ends it. This
is the one place that knows which part fills which role; nobody below asks.
"""

from __future__ import annotations

import dataclasses
import gc
import logging
import platform
import random
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import graphsched
from graphsched.action import fence, inquests
from graphsched.app import (
    access,
    auditing,
    backlog,
    certificates,
    checkups,
    comparing,
    dumping,
    feeding,
    fullness,
    healing,
    intake,
    leadership,
    loop as loops,
    modes,
    neighbours,
    ordering,
    policing,
    promises,
    races,
    rechecks,
    rejections,
    settings as configuration,
    sights,
    strategies,
)
from graphsched.base.kit import clock as clocks
from graphsched.base.kube import client as clients, credentials, leases
from graphsched.base.values import keys
from graphsched.decision import cycle
from graphsched.explain import history
from graphsched.graph import store as stores
from graphsched.observe import metrics, server, tls
from graphsched.sources import (
    custom,
    inbox as inboxes,
    policies,
    reflector,
    reserving,
    resources,
    slurm,
    surveying,
)

_log = logging.getLogger(__name__)

OTHER_CONNECTIONS = 28
"""Beside the bindings: 16 watches, 4 conditions, 2 events, the lease, an audit, an inquest, and some in reserve. A
lease must not wait for a connection.
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """All that runs.

    Attributes:
        loop: Decides.
        parts: What it works with.
        reflectors: Follow the API server.
        sights: Shows what is going on.
        server: Serves that.
        elector: Takes part in the election of the leader; None where there is none.
        auditor: Compares what it believes with what there is.
        surveyor: Puts together what is described of the network.
        policing: Follows GraphPolicies; None where that is switched off.
    """

    loop: loops.Loop
    parts: intake.Parts
    reflectors: tuple[reflector.Reflector[Any], ...]
    sights: sights.Sights
    server: server.Server
    auditor: auditing.Auditor
    surveyor: surveying.Surveyor
    elector: leadership.Elector | None = None
    policing: policing.Policing | None = None

    def background(self) -> dict[str, Coroutine[Any, Any, object]]:
        """Name → work that goes on as long as the program, apart from the loop itself."""
        works: dict[str, Coroutine[Any, Any, object]] = {
            f"watch {each.resource.name}": self._follow(each) for each in self.reflectors
        }
        if self.elector is not None:
            works["election"] = self.elector.run()
        works["survey"] = self.surveyor.run()
        works["conditions"] = self.parts.conditions.run()
        works["events"] = self.parts.events.run()
        works["mode"] = self.parts.strategy.run()
        works["audit"] = self.auditor.run()
        works["inquests"] = self.parts.rejections.run()
        works["link health"] = self.parts.healing.run()
        if self.policing is not None:
            works |= self.policing.works()
        if (certificate := self.server.door.certificate) is not None:
            works["serving certificate"] = certificate.keep()
        return works

    async def _follow(self, each: reflector.Reflector[Any]) -> None:
        """Watch. A leader has to list after its term began: a first list before the first ballot would be in vain."""
        if self.elector is not None:
            await self.elector.tried.wait()
        await each.run()


def client(settings: configuration.Settings, keeper: credentials.Keeper) -> clients.Client:
    """A client with a connection for everything that may be under way at once."""
    return clients.Client(
        keeper,
        user_agent=f"graphsched/{graphsched.__version__}",
        connections_max=settings.binding.concurrency + OTHER_CONNECTIONS + access.REVIEWS_MAX,
        patience=clients.Patience(request_s=settings.client.timeout_seconds),
    )


def build(settings: configuration.Settings, api: clients.Client, *, clock: clocks.Clock, rng: random.Random) -> Program:
    """Make the program.

    Args:
        settings: What the operator wants.
        api: Reads and writes.
        clock: Its time is everybody's.
        rng: For the jitter of retries and for what is audited next; it decides nothing.

    Raises:
        InputError: The certificate to serve with can not be used, or a file that describes the network can not be read.
    """
    meters, inbox = metrics.Metrics(profile=settings.scheduler_name, version=graphsched.__version__), inboxes.Inbox()
    surveyor = surveying.Surveyor(inbox, (slurm.read(path) for path in settings.topology.files))
    reflectors = _reflectors(settings, api, inbox, meters, surveyor, clock=clock, rng=rng)
    decider, store = cycle.Decider(settings.decider), stores.Store(sick_below=settings.link_health.sick_below)
    queue = backlog.Backlog(settings.backoff, leftover_s=settings.queue.max_unschedulable_seconds)
    kept, past = promises.Promises(store), history.History(settings.decisions.kept)
    noted = races.Races(store, meters, scheduler=settings.scheduler_name, clock=clock)
    learned, beside = _rejections(settings, api, inbox, noted, meters), _beside(settings, store, clock)
    elector = _elector(settings, api, inbox, meters, clock=clock, rng=rng)
    writer = api if elector is None else fence.Fence(api, elector.left_s)
    instance = f"{settings.scheduler_name}-{platform.node()}" if elector is None else elector.identity
    version = _version(store, reflectors)
    making = modes.Making(settings, writer, instance, decider, store, queue, kept, inbox, meters, clock, rng, version)
    means, order = modes.means(making), ordering.wired(settings.queue, queue, meters.plugins, clock=clock)
    ruling = policing.make(making, api, leading=lambda: elector is None or elector.leading)
    parts = intake.Parts(
        store=store,
        inbox=inbox,
        backlog=queue,
        promises=kept,
        dispatcher=means.orders,
        conditions=means.conditions,
        events=means.events,
        meters=meters,
        resync=_resync(reflectors, surveyor, ruling),
        strategy=means.strategy,
        onlookers=(*modes.onlookers(settings, store, meters, noted, learned, beside), surveyor, *order),
        races=noted,
        rejections=learned,
        healing=healing.Healing(store, settings.link_health.half_lives, clock=clock, ready=inbox.ready),
        fullness=fullness.Fullness(store, settings.watermarks, events=means.events, metrics=meters),
        last_look=rechecks.LastLook(store, kept, decider, beside, candidates=settings.shared.candidates),
    )
    checkup = checkups.Checkup(parts.store.matchers, meters, rng=rng)
    loop = loops.Loop(
        parts,
        decider,
        past,
        clock=clock,
        synced=_synced(reflectors, surveyor, ruling),
        leading=(lambda: True) if elector is None else leadership.Mandate(elector, _read_anew(reflectors, ruling)),
        on_start=lambda: _started(parts, means),
        arrange=ordering.arranging(order),
        at_rest=checkup.look if settings.log.level == "debug" else lambda _: None,
    )
    auditor = _auditor(settings, api, parts, loop, reflectors, checkup, surveyor, clock=clock, rng=rng)
    shown = _shown(parts, loop, decider, reflectors, auditor, clock=clock, elector=elector, ruling=ruling, order=order)
    return Program(
        loop=loop,
        parts=parts,
        reflectors=reflectors,
        sights=shown,
        server=server.Server(_seen(settings, parts, means, shown, past), _door(settings.http, api, clock=clock)),
        auditor=auditor,
        surveyor=surveyor,
        elector=elector,
        policing=ruling,
    )


def _shown(
    parts: intake.Parts,
    loop: loops.Loop,
    decider: cycle.Decider,
    reflectors: tuple[reflector.Reflector[Any], ...],
    auditor: auditing.Auditor,
    *,
    clock: clocks.Clock,
    elector: leadership.Elector | None,
    ruling: policing.Policing | None,
    order: tuple[ordering.Ordering, ...],
) -> sights.Sights:
    """What shows how things stand, also to whoever scrapes the metrics."""
    followed = [each.progress for each in reflectors]
    shown = sights.Sights(
        parts, loop, decider, followed, auditor, clock=clock, elector=elector, policies=ruling, order=order
    )
    parts.meters.refresh_with(shown.refresh)
    return shown


def _synced(
    reflectors: tuple[reflector.Reflector[Any], ...],
    surveyor: surveying.Surveyor,
    ruling: policing.Policing | None,
) -> Callable[[], bool]:
    """Tells whether all that decisions are made from has been read once."""
    read = [*(each.progress.synced for each in reflectors), *([] if ruling is None else [ruling.synced])]
    return lambda: all(each.is_set() for each in read) and surveyor.settled


def _resync(
    reflectors: tuple[reflector.Reflector[Any], ...],
    surveyor: surveying.Surveyor,
    ruling: policing.Policing | None,
) -> intake.Resync:
    """Asks whoever sends a stream to send everything again."""
    by_stream: dict[str, intake.Source] = {surveying.SOURCE: surveyor}
    by_stream |= {each.sent.source: each for each in reflectors}
    if ruling is not None:
        by_stream[policies.SOURCE] = ruling

    def resync(source: str, reason: str, *, epoch: int) -> None:
        by_stream[source].resync(reason, epoch=epoch)

    return resync


def _version(
    store: stores.Store, reflectors: tuple[reflector.Reflector[Any], ...]
) -> Callable[[keys.VertexKey, str], str]:
    """What tells the version at which a pod waits, empty where the watch has told more than the graph knows yet."""
    (source,) = (each for each in reflectors if each.resource is resources.PODS)

    def version(key: keys.VertexKey, uid: str) -> str:
        known, pod = source.known(key), store.pod(key)
        if known is None or known.uid != uid or pod is None or pod.node or not comparing.in_step(store, source):
            return ""
        return known.version

    return version


def _seen(
    settings: configuration.Settings,
    parts: intake.Parts,
    means: strategies.Means,
    shown: sights.Sights,
    past: history.History,
) -> server.Sights:
    """What there is to look at."""
    return server.Sights(
        metrics=parts.meters,
        health=shown.health(),
        decisions=past.newest,
        conflicts=parts.races.newest,
        explain=shown.explain,
        graph=shown.graph,
        # Another process, or the same one started again, must have another number.
        feed=feeding.Feed(parts.store, epoch=uuid.uuid4().int >> 67),
        affinity=feeding.AffinityFeed(parts.store, epoch=uuid.uuid4().int >> 67),
        queue=shown.queue,
        standby=shown.standby,
        config=settings,
        shadow=means.shadow,
    )


def _read_anew(
    reflectors: tuple[reflector.Reflector[Any], ...], ruling: policing.Policing | None
) -> list[leadership.Source]:
    """What a new leader lists before it decides, see `leadership.Mandate`."""
    followed = [each for each in reflectors if each.resource.name in {resources.NODES.name, resources.PODS.name}]
    return [*followed, *([] if ruling is None else [ruling])]


def _elector(
    settings: configuration.Settings,
    api: clients.Client,
    inbox: inboxes.Inbox,
    meters: metrics.Metrics,
    *,
    clock: clocks.Clock,
    rng: random.Random,
) -> leadership.Elector | None:
    """Takes part in the election, and wakes the loop when a term begins or ends; None where there is none.

    Mode `shadow` writes nothing, so it needs no leader and no right to a lease.
    """
    options = settings.leader_election
    if not options.enabled or settings.mode == "shadow":
        return None
    lease = options.lease_of(settings.scheduler_name)
    return leadership.Elector(
        leases.APIRegistry(api, namespace=options.namespace, name=lease),
        options,
        name=f"{options.namespace}/{lease}",
        identity=options.identity or f"{platform.node()}_{uuid.uuid4()}",
        clock=clock,
        rng=rng,
        observer=meters.election,
        on_change=inbox.ready.set,
    )


def _auditor(
    settings: configuration.Settings,
    api: clients.Client,
    parts: intake.Parts,
    loop: loops.Loop,
    reflectors: tuple[reflector.Reflector[Any], ...],
    checkup: checkups.Checkup,
    surveyor: surveying.Surveyor,
    *,
    clock: clocks.Clock,
    rng: random.Random,
) -> auditing.Auditor:
    """Who compares all of that with the cluster."""
    dumper = dumping.Dumper(
        parts,
        lambda: dict(loop.intake.counts),
        [each.progress for each in reflectors],
        directory=settings.audit.dump_directory,
        kept=settings.audit.dumps_kept,
        clock=clock,
    )
    auditor = auditing.Auditor(
        parts,
        loop.intake,
        reflectors,
        comparing.Comparer(parts.store, api, clock=clock),
        checkup,
        surveyor,
        started=lambda: loop.started,
        dump=dumper.dump,
        every_s=settings.audit.every_seconds,
        clock=clock,
        rng=rng,
    )
    for each in reflectors:
        each.progress.on_doubt = auditor.doubt
    return auditor


def _beside(settings: configuration.Settings, store: stores.Store, clock: clocks.Clock) -> neighbours.Neighbours:
    headroom = settings.decider.headroom
    return neighbours.Neighbours(store, scheduler=settings.scheduler_name, headroom=headroom, clock=clock)


def _rejections(
    settings: configuration.Settings,
    api: clients.Client,
    inbox: inboxes.Inbox,
    noted: races.Races,
    meters: metrics.Metrics,
) -> rejections.Rejections:
    """Who learns from kubelets."""
    return rejections.Rejections(
        inquests.Inquests(api, ready=inbox.ready),
        noted,
        meters,
        scheduler=settings.scheduler_name,
        penalty=settings.shared.rejection_penalty,
        half_life_s=settings.shared.rejection_half_life_seconds,
    )


def _reflectors(
    settings: configuration.Settings,
    api: clients.Client,
    inbox: inboxes.Inbox,
    meters: metrics.Metrics,
    surveyor: surveying.Surveyor,
    *,
    clock: clocks.Clock,
    rng: random.Random,
) -> tuple[reflector.Reflector[Any], ...]:
    """Whoever follows the API server."""
    followed = reserving.followed(settings.resources.kept)
    if settings.topology.crds == "auto":
        followed += custom.ALL
    for resource in followed:
        meters.expect(resource.name)
    return tuple(
        reflector.Reflector(
            resource,
            client=api,
            inbox=inbox,
            clock=clock,
            observer=meters.watches,
            rng=rng,
            surveyor=surveyor,
            events_a_patch=modes.events_a_patch(settings),
        )
        for resource in followed
    )


def _door(http: configuration.HTTPSettings, api: clients.Client, *, clock: clocks.Clock) -> server.Door:
    """Who is let in to look on."""
    certificate = None
    if http.tls.self_signed:
        certificate = tls.Certificate(certificates.of_its_own(http.host, clock=clock), place="http.tls.selfSigned")
    elif http.tls.on:
        read = certificates.of_files(http.tls.cert_file, http.tls.key_file)
        certificate = tls.Certificate(read, place=http.tls.cert_file)
    guard = access.Delegated(api, clock=clock) if http.auth == "delegated" else None
    return server.Door(guard, certificate)


def _started(parts: intake.Parts, means: strategies.Means) -> None:
    """The first lists are in the graph, and most of what is there will stay.

    The policy for the garbage collector: what there is now is never looked at again (`freeze`), since nearly all of it
    lives as long as the program and none of it has cycles. What comes later is collected as usual, but a full
    collection then looks at a small part only and takes milliseconds.
    """
    gc.collect()
    gc.freeze()
    _log.info(
        "every list is taken: %d nodes, %d pods wait for a node, deciding begins",
        len(parts.store.columns.rows),
        len(parts.backlog),
    )
    means.begin()
