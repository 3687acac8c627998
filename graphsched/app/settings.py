"""What an operator can set: a YAML file, flags that win over it, defaults under both.

Comes in: the path of a file and the flags that were given. Goes out: `Settings`, complete and checked, or an
`InputError` that names file or flag, field, problem and remedy. Nothing else in the program reads a configuration file;
`wiring` hands each part what is its own.

Invariant: a name nobody knows is an error with the nearest known one, never ignored: a typo must not run a cluster.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping

import msgspec

from graphsched.app import backoff, election, fullness, healing, reserving, setting_checks, setting_files
from graphsched.app.groups import Count, Group, Rate, Seconds, SecondsOrNone
from graphsched.base.kube import complaints
from graphsched.base.values import errors
from graphsched.decision import profile as judging


class ClientSettings(Group, frozen=True):
    """How the API server is reached.

    Attributes:
        kubeconfig: Path; empty for $KUBECONFIG, the pod's service account or ~/.kube/config, in this order.
        context: A context in it; empty for the current one.
        timeout_seconds: The longest a call may take.
    """

    kubeconfig: str = ""
    context: str = ""
    timeout_seconds: Seconds = 30.0


class TLSSettings(Group, frozen=True):
    """What HTTPS is served with; without any of these it is plain HTTP.

    Attributes:
        cert_file: PEM file with the certificate and its chain; read again when it changes.
        key_file: PEM file with its private key.
        self_signed: Make a certificate at the start instead, in memory, as kube-scheduler does without one of its own.
    """

    cert_file: str = ""
    key_file: str = ""
    self_signed: bool = False

    @property
    def on(self) -> bool:
        """Whether it is HTTPS."""
        return self.self_signed or bool(self.cert_file)


class HTTPSettings(Group, frozen=True):
    """Where metrics, health and debug endpoints are served, and to whom.

    Attributes:
        host: The address to listen on; one that other hosts reach needs auth: delegated.
        port: Its port; 0 for any free one.
        auth: `loopback`, everything for whoever is on this host; `delegated`, on TLS, for bearer tokens whose owner the
            API server lets get the path (TokenReview, SubjectAccessReview), and the health endpoints for everybody.
    """

    host: str = "127.0.0.1"
    port: typing.Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 10_260
    auth: typing.Literal["loopback", "delegated"] = "loopback"
    tls: TLSSettings = TLSSettings()


class BindingSettings(Group, frozen=True):
    """How decisions are carried out.

    Attributes:
        concurrency: Bindings under way at a time.
        grace_seconds: How long those under way may take when the program is told to end.
    """

    concurrency: typing.Annotated[int, msgspec.Meta(ge=1, le=1024)] = 32
    grace_seconds: Seconds = 20.0


class QueueSettings(Group, frozen=True):
    """How long pods that found no node wait.

    Attributes:
        initial_backoff_seconds: Penalty after the first refusal; it doubles with each.
        max_backoff_seconds: The longest penalty; 0 for none at all.
        max_refused_backoff_seconds: The longest penalty for pods whose binding admission refuses.
        max_unschedulable_seconds: After this long without an event that may help, a pod is tried in any case.
        order: Which plugin orders pods of equal priority: `priorityQueue`, `criticalPath`, or one that an installed
            package offers (docs/plugins.md); empty for kube-scheduler's order, by age.
        order_budget_seconds: How long that plugin may take each time.
    """

    initial_backoff_seconds: Seconds = 1.0
    max_backoff_seconds: SecondsOrNone = 10.0
    max_refused_backoff_seconds: Seconds = 300.0
    max_unschedulable_seconds: Seconds = 300.0
    order: str = ""
    order_budget_seconds: typing.Annotated[float, msgspec.Meta(gt=0, le=0.05)] = 0.01


class EventSettings(Group, frozen=True):
    """How many Kubernetes events are written; more are dropped and counted.

    Attributes:
        per_second: On average.
        burst: At once.
        queue_length: How many may wait.
    """

    per_second: Rate = 1000.0
    burst: Count = 1000
    queue_length: Count = 10_000


class ConditionSettings(Group, frozen=True):
    """How fast the PodScheduled conditions of waiting pods are written.

    Attributes:
        per_second: On average.
        burst: At once.
    """

    per_second: Rate = 100.0
    burst: Count = 1000


class LogSettings(Group, frozen=True):
    """How the log is written.

    Attributes:
        format: `text` for people, `json` for machines.
        level: The least that is written; at `debug` the counts of pods are audited as well, when there is time.
    """

    format: typing.Literal["text", "json"] = "text"
    level: typing.Literal["debug", "info", "warning", "error"] = "info"


class DecisionSettings(Group, frozen=True):
    """What is kept of past decisions.

    Attributes:
        kept: How many of the last ones `/debug/decisions` and `explain` know.
    """

    kept: Count = 2000


class AuditSettings(Group, frozen=True):
    """How often the graph is compared with fresh lists of the cluster, and where a dump (signal SIGUSR2) goes.

    Attributes:
        every_seconds: Time between two audits, give or take a tenth; 0 for none but those that something gives cause
            for: a signal, or an API server that was away.
        dump_directory: Where dumps are written; empty for the system's temporary directory.
        dumps_kept: How many dumps are kept there, the newest ones.
    """

    every_seconds: SecondsOrNone = 600.0
    dump_directory: str = ""
    dumps_kept: typing.Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10


class ProfileSettings(Group, frozen=True):
    """How nodes are judged; the defaults are kube-scheduler's default profile.

    Attributes:
        weights: Plugin → weight of its score, 0 for none; those left out keep their default.
        disabled_filters: Plugins whose filters do not run.
        allocation: Resource → weight in the least-allocated score.
        balance: Resources whose balance is scored.
        ignored_resources: Extended resources the fit filter passes over.
        ignored_resource_groups: Prefixes (before the `/`) of such resources.
    """

    weights: dict[str, typing.Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]] = msgspec.field(default_factory=dict)
    disabled_filters: tuple[str, ...] = ()
    allocation: dict[str, typing.Annotated[int, msgspec.Meta(ge=1, le=100)]] = msgspec.field(
        default_factory=lambda: dict(judging.Profile().allocation)
    )
    balance: tuple[str, ...] = judging.Profile().balance
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()


class SharedSettings(Group, frozen=True):
    """Mode `shared`: every node, beside others. All but headroom counts in `exclusive` too, `candidates` in `advise`.

    Attributes:
        headroom_percent: Share of every node's allocatable resources that our pods leave free; 0 decides exactly as
            kube-scheduler does, more costs capacity and saves races with other schedulers. Nodes that keep less than
            four times as much are taken from the fullest, so as to be out of others' way.
        candidates: How many nodes are tried when the first one has moved just before the binding; then the pod is
            decided anew.
        rejection_penalty: Points taken from a node's total when its kubelet has rejected a pod of ours; 0 for none.
        rejection_half_life_seconds: After this long the penalty has halved.
    """

    headroom_percent: typing.Annotated[int, msgspec.Meta(ge=0, le=50)] = 0
    candidates: typing.Annotated[int, msgspec.Meta(ge=1, le=3)] = 3
    rejection_penalty: typing.Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 200
    rejection_half_life_seconds: Seconds = 60.0


class ExclusiveSettings(Group, frozen=True):
    """Mode `exclusive`: only nodes of a pool of our own.

    Attributes:
        node_label: Key of the label that makes a node one of the pool; the pool's taint has the same key.
        value: Value of the label, and of the taint.
    """

    node_label: str = "graphsched.io/pool"
    value: str = "graph-scheduler"


class AdviseSettings(Group, frozen=True):
    """Mode `advise`: another scheduler binds, to the node chosen here.

    Attributes:
        gate: Pods with this scheduling gate are ours, whatever their schedulerName.
        give_up_seconds: After so long without a binding, the room that was meant for a pod is for others again.
    """

    gate: str = "graphsched.io/advise"
    give_up_seconds: Seconds = 300.0


class ShadowSettings(Group, frozen=True):
    """Mode `shadow`: decides and compares, binds nothing.

    Attributes:
        scheduler_name: The scheduler whose pods are decided on as well, and whose choices are compared.
        settle_seconds: A pod that still waits so long after our decision on it counts as left pending by the other.
        kept: How many of the last disagreements are kept with their reasons.
    """

    scheduler_name: str = "default-scheduler"
    settle_seconds: Seconds = 10.0
    kept: Count = 1000


class TopologySettings(Group, frozen=True):
    """What is known of the network beyond the labels of nodes; see docs/topology.md.

    Attributes:
        crds: `auto` follows the custom resources that describe networks and groups of workloads, each where it is
            installed; `none` follows none of them.
        files: topology.conf or topology.yaml files of Slurm, read at the start.
    """

    crds: typing.Literal["auto", "none"] = "auto"
    files: tuple[str, ...] = ()


class PolicySettings(Group, frozen=True):
    """Whether the rules of GraphPolicies are followed.

    Attributes:
        enabled: `auto`, where their definition is installed, be it later, and may be read; `always`, and nothing is
            decided before; `never`.
    """

    enabled: typing.Literal["auto", "always", "never"] = "auto"


class Settings(Group, frozen=True):
    """All settings.

    Attributes:
        scheduler_name: Pods that name it as their schedulerName are ours.
        mode: How decisions become placements: `shared`, `exclusive`, `advise` or `shadow`; see docs/modes.md.
        watermarks: Resource → the marks between which a node counts as full; see docs/graph.md. None by default.
    """

    scheduler_name: str = judging.Profile().scheduler_name
    mode: typing.Literal["shared", "exclusive", "advise", "shadow"] = "shared"
    shared: SharedSettings = SharedSettings()
    exclusive: ExclusiveSettings = ExclusiveSettings()
    advise: AdviseSettings = AdviseSettings()
    shadow: ShadowSettings = ShadowSettings()
    client: ClientSettings = ClientSettings()
    http: HTTPSettings = HTTPSettings()
    binding: BindingSettings = BindingSettings()
    queue: QueueSettings = QueueSettings()
    events: EventSettings = EventSettings()
    conditions: ConditionSettings = ConditionSettings()
    log: LogSettings = LogSettings()
    decisions: DecisionSettings = DecisionSettings()
    leader_election: election.LeaderElectionSettings = election.LeaderElectionSettings()
    audit: AuditSettings = AuditSettings()
    topology: TopologySettings = TopologySettings()
    profile: ProfileSettings = ProfileSettings()
    link_health: healing.LinkHealthSettings = healing.LinkHealthSettings()
    resources: reserving.ResourceSettings = reserving.ResourceSettings()
    watermarks: dict[str, fullness.MarkSettings] = msgspec.field(default_factory=dict)
    policies: PolicySettings = PolicySettings()

    @property
    def backoff(self) -> backoff.Policy:
        """The penalties of the queue."""
        queue = self.queue
        return backoff.Policy(
            queue.initial_backoff_seconds, queue.max_backoff_seconds, queue.max_refused_backoff_seconds
        )

    @property
    def decider(self) -> judging.Profile:
        """What the decision goes by."""
        mine = self.profile
        return judging.Profile(
            scheduler_name=self.scheduler_name,
            weights={**judging.DEFAULT_WEIGHTS, **judging.GRAPH_WEIGHTS, **mine.weights},
            disabled=frozenset(mine.disabled_filters),
            allocation=tuple(sorted(mine.allocation.items())),
            balance=mine.balance,
            ignored_resources=frozenset(mine.ignored_resources),
            ignored_groups=frozenset(mine.ignored_resource_groups),
            pool=(self.exclusive.node_label, self.exclusive.value) if self.mode == "exclusive" else None,
            headroom=self.shared.headroom_percent if self.mode == "shared" else 0,
            sick_below=self.link_health.sick_below,
        )


FLAGS: dict[str, str] = {
    "--scheduler-name": "schedulerName",
    "--mode": "mode",
    "--kubeconfig": "client.kubeconfig",
    "--context": "client.context",
    "--host": "http.host",
    "--port": "http.port",
    "--leader-elect": "leaderElection.enabled",
    "--log-format": "log.format",
    "--log-level": "log.level",
}
"""Flag → the setting it overrides."""


def load(path: str = "", *, flags: Mapping[str, object] | None = None) -> Settings:
    """The settings in effect.

    Args:
        path: A YAML file; empty for none.
        flags: Flag, as in `FLAGS`, → its value; None for one that was not given.

    Raises:
        InputError: A file, field or flag is not what it should be.
    """
    settings = _convert(setting_files.read(path), place=path) if path else Settings()
    for flag, value in (flags or {}).items():
        if value is not None:
            settings = _override(settings, flag, value)
    setting_checks.check(settings, place=path or "settings")
    return settings


def _override(settings: Settings, flag: str, value: object) -> Settings:
    """The settings with one more flag on top."""
    field = FLAGS[flag]
    tree = typing.cast("dict[str, typing.Any]", msgspec.to_builtins(settings))
    *groups, last = field.split(".")
    target = tree
    for group in groups:
        target = target[group]
    target[last] = value
    return _convert(tree, place=flag, flag=True)


def _convert(tree: object, *, place: str, flag: bool = False) -> Settings:
    try:
        return msgspec.convert(tree, Settings)
    except msgspec.ValidationError as error:
        text, _, at = str(error).partition(" - at `$")
        if not at and " - at `key` in `$" in text:
            text, _, at = text.partition(" - at `key` in `$")
            text = text.replace("Expected", "Expected name")
        if flag:
            raise _blame(text, (place,), "") from error
        raise _blame(text, (place, complaints.field_of(Settings, tree, error)), at) from error


_SHOWN_MAX = 100
"""Characters of a wrong value in a message."""
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}


def _blame(text: str, place: tuple[str, ...], path: str) -> errors.InputError:
    """The error behind a message of msgspec at this path, which tells of a key in a mapping only that it is one."""
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        return _unknown(found[1], place, path)
    if found := re.fullmatch(r"Object missing required field `(\w+)`", text):
        return errors.InputError(*place, problem=f"{found[1]} is missing", remedy="see docs/configuration.md")
    if found := re.fullmatch(r"Expected `(\w+)`, got `(\w+)`", text):
        wanted, got = (_WORDS.get(word, word) for word in found.groups())
        return errors.InputError(*place, problem=f"is {got}", remedy=f"it must be {wanted}")
    if text.startswith("Expected name `str`"):
        return errors.InputError(*place, problem="a name in it is no text", remedy="quote it")
    if found := re.fullmatch(r"Expected `\w+` ([<>]=?) (\S+)", text):
        bound = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}[found[1]]
        return errors.InputError(*place, problem="is out of range", remedy=f"it must be {bound} {found[2]}")
    if found := re.fullmatch(r"Invalid enum value '?(.*?)'?", text):
        choice = next((each for name, each in _CHOICES.items() if place[-1].endswith(name)), "")
        return errors.InputError(
            *place, problem=f'"{found[1][:_SHOWN_MAX]}" is not known', remedy=choice and f"use one of: {choice}"
        )
    return errors.InputError(*place, problem=text.replace("`", ""), remedy="see docs/configuration.md")


_CHOICES = {
    "format": "text, json",
    "auth": "loopback, delegated",
    "level": "debug, info, warning, error",
    "mode": "shared, exclusive, advise, shadow",
    "crds": "auto, none",
    "policies.enabled": "auto, always, never",
}


def _unknown(name: str, place: tuple[str, ...], path: str) -> errors.InputError:
    kind: typing.Any = Settings
    # Entries of lists and mappings are written `[0]` and `[...]`.
    for part in re.findall(r"\w+|\[[^]]*]", path):
        if part.startswith("["):
            kind = next(each for each in typing.get_args(kind) if isinstance(each, type) and issubclass(each, Group))
        else:
            kind = next(field.type for field in msgspec.structs.fields(kind) if field.encode_name == part)
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    return errors.InputError(
        *place, problem=f'unknown setting "{name[:_SHOWN_MAX]}"', remedy=setting_checks.nearest(name, known)
    )
