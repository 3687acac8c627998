"""The whole scheduler at work with chosen rights on a real API server, and what it says that it may not do.

Comes in: a control plane with RBAC, and for each trial the rights of its service account. Goes out: a `Trial` that has
placed a pod, refused another and answered a request for metrics as far as it could, and its complaints: the pairs of
verb and resource in which the API server's 403 stands in its log.

Each trial is all of `wiring.build` on the event loop of the test, under a scheduler name and an account of its own, so
that many of them share one control plane and a few seconds.
"""

import asyncio
import contextlib
import dataclasses
import functools
import json
import logging
import random
import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from graphsched.action import bind
from graphsched.app import run, settings as configuration, wiring
from graphsched.base.kit import clock as clocks, tasks
from graphsched.base.kube import client as clients, credentials, pods as kube_pods, wire
from graphsched.base.values import pods
from graphsched.observe import access
from tests.chart import rendering
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects, processes

Right = tuple[str, str, str]
"""API group, resource, verb."""
Complaint = tuple[str, str]
"""Verb, resource."""
Tokens = Mapping[str, str]
"""Account → its token."""

NAMESPACE = "default"
NODE = "n1"
SCRAPER = "scraper"
DEADLINE_S = 30.0
POLL_S = 0.1
NOTICES = 2
"""About one policy with something wrong: its status and an event."""
AT_A_TIME = 8
"""Whole schedulers on one event loop: more would only make each other slow."""
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_LOGGERS = ("graphsched", "kopf")
_FORBIDDEN = re.compile(r'User "system:serviceaccount:default:([\w-]+)" cannot (\w+) resource "([\w./]+)"')


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a scheduler has done when nothing is missing, by its mode.

    Attributes:
        outcome: Of the decision that finds a node, as `graphsched_bind_total` has it.
        conditions: How many it writes.
        events: How many, at least, with the two of the test.
        late: Whether it reads a pod that somebody else has bound.
    """

    outcome: str
    conditions: int = 0
    events: int = 0
    late: bool = False


WORK = {
    # Written are: that one pod was placed, that two were not, and that this happened twice to one of them.
    "shared": Work(outcome="bound", conditions=1, events=4, late=True),
    "advise": Work(outcome="advised", events=2),
    "shadow": Work(outcome="noted"),
}


@dataclasses.dataclass(slots=True)
class Trial:
    """One scheduler with its rights.

    Attributes:
        name: Of its service account, of its role, and what pods call it.
        rights: What it may do.
        mode: One of those in `WORK`.
        ruled: Name of a GraphPolicy of which it has something to say, in its status and in an event, and once more when
            that changes; empty for none.
        complaints: What it said so far that it may not do.
        program: It, once it runs.
        verdict: The status for a request for metrics with a token that may have them; 0 before.
        taken: A pod that somebody else has bound; None before it exists.
        outcome: Of binding that pod; None before.
        complained: Set with the first complaint.
    """

    name: str
    rights: frozenset[Right]
    mode: str = "shared"
    ruled: str = ""
    complaints: set[Complaint] = dataclasses.field(default_factory=set)
    program: wiring.Program | None = None
    verdict: int = 0
    taken: pods.Pod | None = None
    outcome: bind.Outcome | None = None
    complained: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    def metric(self, name: str, **labels: str) -> float:
        """The value of a series; 0 where it does not exist."""
        assert self.program is not None
        return self.program.parts.meters.registry.get_sample_value(name, labels) or 0.0

    def unready(self) -> dict[str, str]:
        """What `/readyz` names: check → what is wrong."""
        assert self.program is not None
        return {name: problem for name, problem in self.program.sights.health().report("readyz").results if problem}

    def undone(self) -> list[str]:
        """What there is still to do."""
        work = WORK[self.mode]
        events = self.metric("graphsched_events_total", outcome="written")
        done = {
            f"a decision is {work.outcome}": self.metric("graphsched_bind_total", outcome=work.outcome) >= 1,
            "conditions": self.metric("graphsched_conditions_total", outcome="written") == work.conditions,
            f"{work.events} events are written ({events:.0f})": events >= work.events,
            f"metrics are shown ({self.verdict})": self.verdict == access.ALLOWED,
            "a binding came too late": self.outcome is not None or not work.late,
            f"it is ready ({self.unready()})": not self.unready(),
            "a policy is told how it stands": (
                not self.ruled or self.metric("graphsched_policy_notices_total", outcome="written") >= 2 * NOTICES
            ),
        }
        return [what for what, is_done in done.items() if not is_done]


def spread(rules: Iterable[rendering.Object]) -> frozenset[Right]:
    """The single rights in rules of roles."""
    return frozenset(
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    )


@contextlib.contextmanager
def granted(cluster: clusters.Cluster, trials: Iterable[Trial]) -> Iterator[None]:
    """Rights for all trials, and for who scrapes them, in effect within the block."""
    trials = list(trials)
    with contextlib.ExitStack() as stack:
        stack.enter_context(roles(cluster, SCRAPER, [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]))
        for trial in trials:
            rules = [{"apiGroups": [group], "resources": [what], "verbs": [verb]} for group, what, verb in trial.rights]
            stack.enter_context(roles(cluster, trial.name, rules))
        for trial in trials:
            processes.wait_until(
                functools.partial(_in_effect, cluster, trial), what="the rights are in effect", timeout_s=10.0
            )
        yield


@contextlib.contextmanager
def roles(
    cluster: clusters.Cluster, name: str, rules: list[rendering.Object], *, namespace: str = ""
) -> Iterator[None]:
    """An account of this name has these rights within the block, in a namespace or (empty) everywhere."""
    where, kind = (f"/namespaces/{namespace}", "Role") if namespace else ("", "ClusterRole")
    role = {"metadata": {"name": name}, "rules": rules}
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }
    plural = f"{_RBAC}{where}/{kind.lower()}s"
    bindings = f"{_RBAC}{where}/{kind.lower()}bindings"
    cluster.call("POST", plural, role)
    try:
        cluster.call("POST", bindings, binding)
        try:
            yield
        finally:
            cluster.call("DELETE", f"{bindings}/{name}")
    finally:
        cluster.call("DELETE", f"{plural}/{name}")


def _in_effect(cluster: clusters.Cluster, trial: Trial) -> bool:
    group, resource, verb = min(trial.rights)
    body = {
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{trial.name}",
            "resourceAttributes": {"group": group, "resource": resource, "verb": verb},
        }
    }
    answer = cluster.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    return bool(answer["status"]["allowed"])


def hold(cluster: clusters.Cluster, trials: Iterable[Trial], **config: object) -> None:
    """Run all trials until each has complained or has done all that there is to do.

    Raises:
        TimeoutError: One did neither.
    """
    by_name = {trial.name: trial for trial in trials}
    cluster.call("POST", scheduling.NODES, objects.node(NODE, cpu="64", memory="64Gi"))
    for trial in by_name.values():
        spec = {"schedulingGates": [{"name": _gate(trial)}]} if trial.mode == "advise" else {}
        for name, cpu in (("fits", "100m"), ("big", "1000")):
            pod = objects.pod(f"{name}-{trial.name}", scheduler=trial.name, cpu=cpu, spec=spec)
            cluster.call("POST", scheduling.PODS, pod)
        taken = objects.pod(f"taken-{trial.name}", spec={"nodeName": NODE})
        made = cluster.call("POST", scheduling.PODS, taken)
        trial.taken = kube_pods.pod(wire.POD.decode(json.dumps(made).encode()))
    tokens = {name: cluster.service_account_token(NAMESPACE, name) for name in (SCRAPER, *by_name)}
    with _Listening(by_name):
        asyncio.run(_hold(cluster, list(by_name.values()), config, tokens))


class _Listening(logging.Handler):
    """Hands complaints to the trial they come from."""

    def __init__(self, trials: dict[str, Trial]) -> None:
        super().__init__()
        self._trials = trials

    def emit(self, record: logging.LogRecord) -> None:
        """Look for the API server's words."""
        for name, verb, resource in _FORBIDDEN.findall(record.getMessage()):
            self._trials[name].complaints.add((verb, resource))
            self._trials[name].complained.set()

    def __enter__(self) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self)

    def __exit__(self, *_: object) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).removeHandler(self)


async def _hold(cluster: clusters.Cluster, trials: list[Trial], config: dict[str, object], tokens: Tokens) -> None:
    places = asyncio.Semaphore(AT_A_TIME)
    async with asyncio.TaskGroup() as group:
        for trial in trials:
            group.create_task(_one(cluster, trial, config, tokens, places))


async def _one(
    cluster: clusters.Cluster,
    trial: Trial,
    config: dict[str, object],
    tokens: Tokens,
    places: asyncio.Semaphore,
) -> None:
    of_its_own = {
        "schedulerName": trial.name,
        "mode": trial.mode,
        "advise": {"gate": _gate(trial)},
        "shadow": {"schedulerName": trial.name},
    }
    settings = msgspec.convert({**config, **of_its_own}, configuration.Settings)
    owned = credentials.Credentials(
        origin=trial.name,
        server=cluster.server,
        authority=cluster.authority.read_text(),
        authorization=f"Bearer {tokens[trial.name]}",
    )

    async def load() -> credentials.Credentials:
        return owned

    clock = clocks.RealClock()
    async with places, wiring.client(settings, credentials.Keeper(load, clock=clock)) as client:
        trial.program = program = wiring.build(settings, client, clock=clock, rng=random.Random(1))
        stopping = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(run.serve(program, settings, stopping))
            besides = group.create_task(_besides(trial, program, client, tokens[SCRAPER]))
            changing = group.create_task(_changing(cluster, trial))
            await _settled(trial)
            besides.cancel()
            changing.cancel()
            stopping.set()


async def _settled(trial: Trial) -> None:
    """Wait until the trial has complained, or has nothing left to do."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not trial.complaints and trial.undone():
                await tasks.pause(POLL_S, until=trial.complained)
    except TimeoutError:
        raise TimeoutError(f"{trial.name} does not complain, and this is not done: {trial.undone()}") from None


async def _besides(trial: Trial, program: wiring.Program, client: clients.Client, token: str) -> None:
    """What does not happen by itself within seconds: a second refusal, a scrape, a binding that came too late."""
    taken = trial.taken
    assert taken is not None
    # A replica that does not lead yet writes nothing.
    while not trial.metric("graphsched_bind_total", outcome=WORK[trial.mode].outcome):  # noqa: ASYNC110  a number
        await asyncio.sleep(POLL_S)
    if WORK[trial.mode].events:
        await _tell_twice(program, taken)
    guard = program.server.door.guard
    assert guard is not None
    while trial.verdict in {0, access.UNAVAILABLE}:
        trial.verdict = (await guard(token, "/metrics")).status
    if WORK[trial.mode].late:
        order = bind.Order(taken, "elsewhere", asked=0.0)
        trial.outcome = await bind.bind(client, order, deadline_s=10.0, rng=random.Random(1))


async def _changing(cluster: clusters.Cluster, trial: Trial) -> None:
    """Its policy gets one more rule to complain of, which a watch tells long before the next list."""
    if not trial.ruled:
        return
    while trial.metric("graphsched_policy_notices_total", outcome="written") < NOTICES:  # noqa: ASYNC110  a number
        await asyncio.sleep(POLL_S)
    path = f"{crds.path_of(crds.GRAPH_POLICIES)}/{trial.ruled}"
    found = cluster.call("GET", path)
    found["spec"]["rules"].append({**found["spec"]["rules"][0], "name": "another"})
    cluster.call("PUT", path, found)


async def _tell_twice(program: wiring.Program, pod: pods.Pod) -> None:
    """An event and its growth: a pod that is refused again by itself waits for half a minute at least."""
    told = program.parts.events
    told.failed(pod, "refused for the test")
    while len(told):  # noqa: ASYNC110  nobody tells when the outlet is empty
        await asyncio.sleep(POLL_S)
    told.failed(pod, "refused for the test")


def _gate(trial: Trial) -> str:
    return f"graphsched.io/{trial.name}"
