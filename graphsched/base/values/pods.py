"""What scheduling needs to know of a pod, decoded once at the border.

`Pod` is the identity and the changing part; `Spec` is the part that decides feasibility and score, which all replicas
of a workload share: it is interned, so a bound pod costs its names and little else. API objects become these values in
`base/kube`; `graph/` counts them, `decision/` compiles the spec into a class.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import keys, labels, nodes


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """A toleration. `operator` is Equal (also when the manifest left it out), Exists, Lt or Gt; an empty `effect` or
    key stands for any.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: nodes.Taint) -> bool:
        """Whether this toleration covers the taint, as kube-scheduler compares them (Lt and Gt cover nothing: their
        feature gate is off by default).
        """
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        if self.operator == "Exists":
            return True
        return self.operator == "Equal" and self.value == taint.value


class HostPort(msgspec.Struct, frozen=True, gc=False):
    """A port of the host that the pod takes. `ip` is 0.0.0.0 for any."""

    protocol: str
    ip: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Whether both can not be held on one node."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.ip == other.ip or "0.0.0.0" in (self.ip, other.ip)  # noqa: S104  a comparison, nothing is bound


class NodeTerm(msgspec.Struct, frozen=True, gc=False):
    """A node selector term: all label requirements and all field requirements (on metadata.name) must hold.

    Attributes:
        expressions: On labels.
        fields: On fields; the key is the field's path.
        valid: False for a term with a parse error: it matches nothing and later terms still count. Of its fields, those
            that pin names are kept.
    """

    expressions: tuple[labels.Requirement, ...] = ()
    fields: tuple[labels.Requirement, ...] = ()
    valid: bool = True

    @property
    def empty(self) -> bool:
        """Whether it has no requirement at all: such a term matches nothing."""
        return not self.expressions and not self.fields


class PreferredNodeTerm(msgspec.Struct, frozen=True, gc=False):
    """A node selector term with the weight (1 to 100) it adds where it matches."""

    weight: int
    term: NodeTerm


class PodTerm(msgspec.Struct, frozen=True, gc=False):
    """A pod affinity or anti-affinity term, as its owner's namespace resolved it.

    Attributes:
        topology_key: The node label whose values are the domains.
        selector: Which pods; None matches none.
        namespaces: Listed namespaces, sorted; the owner's own where the term names neither list nor selector.
        namespace_selector: Further namespaces by label; None adds none, the empty selector adds all.
    """

    topology_key: str
    selector: labels.Selector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: labels.Selector | None = None


class PreferredPodTerm(msgspec.Struct, frozen=True, gc=False):
    """A pod term with its weight, 1 to 100."""

    weight: int
    term: PodTerm


class SpreadConstraint(msgspec.Struct, frozen=True, gc=False):
    """A topology spread constraint, defaults filled in and matchLabelKeys merged into the selector."""

    max_skew: int
    topology_key: str
    hard: bool
    selector: labels.Selector | None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes from a node.

    Attributes:
        amounts: Requests, without zeros: what filters and the balanced score count.
        scored_cpu: milli-CPU as the allocation score counts it (100m for each container that names none).
        scored_memory: Bytes as the allocation score counts it (200 MiB for each container that names none).
    """

    amounts: nodes.Amounts = ()
    scored_cpu: int = 0
    scored_memory: int = 0


class GpuDemand(msgspec.Struct, frozen=True, gc=False):
    """Shareable GPUs a pod takes: `count` devices, `milli` thousandths of each, of one of `models` (empty: any).

    A fraction (`milli` < 1000) is for one device only and never straddles two.
    """

    count: int
    milli: int
    models: tuple[str, ...] = ()


class Peer(msgspec.Struct, frozen=True, gc=False):
    """Pods that a pod exchanges data with.

    Attributes:
        namespace: Theirs.
        service: The Service that selects them; empty where `selector` does.
        selector: Which pods; None where the Service says.
        rate: Its weight among the peers, e.g. calls a second; positive.
        latency_ms_max: The longest way to one of them; None for any.
        bandwidth_mbps_min: The least bandwidth on the way; None for any.
        cost_max: The greatest cost of the way, in an operator's units; None for any.
    """

    namespace: str
    service: str = ""
    selector: labels.Selector | None = None
    rate: float = 1.0
    latency_ms_max: float | None = None
    bandwidth_mbps_min: float | None = None
    cost_max: float | None = None


class GraphDemand(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks of the graph.

    Attributes:
        near: Vertices one of which it should be near; of a domain the label's own value is enough.
        peers: Whom it exchanges data with.
        latency_ms_max: The longest way to any of those it exchanges data with, its group's included; None for any.
        bandwidth_mbps_min: Likewise the least bandwidth.
        depends_on: Names of what should be placed before it.
        problem: Why the demand can not be read: place, problem and remedy. Nothing meets such a demand.
    """

    near: tuple[keys.VertexKey, ...] = ()
    peers: tuple[Peer, ...] = ()
    latency_ms_max: float | None = None
    bandwidth_mbps_min: float | None = None
    depends_on: tuple[str, ...] = ()
    problem: str = ""


class Spec(msgspec.Struct, frozen=True, weakref=True):
    """All of a pod that decides where it may run and how well, apart from its labels and namespace.

    Attributes:
        demand: Measured from the spec, as for an incoming pod. Its `scored_*` follow the scorer, which ignores
            pod-level requests.
        node_name: spec.nodeName as asked for by the user.
        selector: spec.nodeSelector.
        affinity: Required node affinity: ORed terms; None where the pod has none.
        preferred: Preferred node affinity.
        tolerations: In order.
        ports: Host ports of regular and restartable init containers, sorted, each once.
        images: Normalised image names of init and regular containers, with repeats.
        image_volumes: Normalised references of image volumes.
        image_containers: Number of init and regular containers, which scales the image score's ceiling.
        pod_affinity, pod_anti_affinity: Required terms.
        preferred_pod_affinity, preferred_pod_anti_affinity: Preferred terms.
        spread: Topology spread constraints.
        gpu: Shareable GPUs.
        features: Node features the pod needs, sorted.
        claims: PersistentVolumeClaims, resource claims, volumes and groups that constrain placement, in the words of a
            refusal (`persistentVolumeClaim data`).
        graph: What it asks of the graph; None where that is nothing.
        guaranteed: Whether its QoS class is Guaranteed, so that kubelets may align it with NUMA cells.
    """

    demand: Demand = Demand()
    node_name: str = ""
    selector: labels.Labels = labels.NO_LABELS
    affinity: tuple[NodeTerm, ...] | None = None
    preferred: tuple[PreferredNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()
    image_volumes: tuple[str, ...] = ()
    image_containers: int = 0
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    preferred_pod_affinity: tuple[PreferredPodTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[PreferredPodTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    gpu: GpuDemand | None = None
    features: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    graph: GraphDemand | None = None
    guaranteed: bool = False


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod that is not terminal.

    Attributes:
        key: Its vertex key, `pod/namespace/name`.
        uid: Its UID: another UID under the same key is another pod.
        spec: Interned.
        held: What it counts for on its node (in-place resize included); equal to `spec.demand` for most pods, except
            that `scored_*` honour pod-level requests.
        labels: Interned.
        node: Where it is bound, empty while pending.
        nominated: status.nominatedNodeName.
        scheduler: spec.schedulerName.
        priority: spec.priority.
        never_preempts: Whether spec.preemptionPolicy is Never.
        gates: Names of the scheduling gates still on it, in order.
        deleting: Whether it has a deletionTimestamp.
        devices: Indices of the shareable GPUs it holds on `node`, sorted.
        created: metadata.creationTimestamp, seconds since the epoch; 0 when absent.
        started: status.startTime, seconds since the epoch; None while not started.
        owner: Key of the `selections.Selection` of its controller; empty where it has none that selects pods.
    """

    key: keys.VertexKey
    uid: str = ""
    spec: Spec = Spec()
    held: Demand = Demand()
    labels: labels.Labels = labels.NO_LABELS
    node: str = ""
    nominated: str = ""
    scheduler: str = "default-scheduler"
    priority: int = 0
    never_preempts: bool = False
    gates: tuple[str, ...] = ()
    deleting: bool = False
    devices: tuple[int, ...] = ()
    created: float = 0.0
    started: float | None = None
    owner: str = ""

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.key.split("/", 2)[1]

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.split("/", 2)[2]

    @property
    def full_name(self) -> str:
        """`namespace/name`, as users and events write it."""
        return self.key[4:]


def came(before: Pod | None, after: Pod) -> bool:
    """Whether the pod was not where it is now: it is new, another of its name, or was elsewhere or nowhere."""
    return before is None or (before.uid, before.node) != (after.uid, after.node)
