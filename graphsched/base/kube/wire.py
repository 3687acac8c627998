"""API objects as they travel: only the fields that scheduling reads, decoded once.

JSON comes in from the API server (a page of a list, a line of a watch) or a plain mapping from a manifest; typed
structs go out, and `pods` and `nodes` turn those into values. Everything else in an object is skipped while it is
decoded, which is what keeps a pod at 4 µs although it arrives with kilobytes of managed fields.

Invariant: an object that does not have the types of the API raises `InputError` naming object and field, never
anything else, so that one malformed object can not end a watch.
"""

from __future__ import annotations

import datetime as dt
import json
import typing
from collections.abc import Callable

import msgspec

from graphsched.base.kube import annotated, complaints
from graphsched.base.values import errors

Quantity = str | int | float
"""A manifest may write 2 or 0.5; the API server always sends text."""
Resources = dict[str, Quantity]
Time = typing.Annotated[dt.datetime, msgspec.Meta(tz=True)]


class Body(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all: unknown fields are skipped, absent lists and maps are None since the API sends null as well."""


class Owner(Body, frozen=True, gc=False):
    """An entry of metadata.ownerReferences."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False


class Metadata(Body, frozen=True, gc=False):
    """What identifies an object, and its labels."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: annotated.Annotations | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    owner_references: list[Owner] | None = None


class Requirement(Body, frozen=True, gc=False):
    """One expression of a label selector or of a node selector term."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Body, frozen=True, gc=False):
    """A label selector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Requirement] | None = None


class NodeTerm(Body, frozen=True, gc=False):
    """A node selector term."""

    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(Body, frozen=True, gc=False):
    """Required node affinity."""

    node_selector_terms: list[NodeTerm] | None = None


class PreferredNodeTerm(Body, frozen=True, gc=False):
    """Preferred node affinity."""

    weight: int = 0
    preference: NodeTerm = NodeTerm()


class NodeAffinity(Body, frozen=True, gc=False):
    """spec.affinity.nodeAffinity."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredNodeTerm] | None = msgspec.field(
        default=None,
        name="preferredDuringSchedulingIgnoredDuringExecution",
    )


class PodTerm(Body, frozen=True, gc=False):
    """A pod affinity or anti-affinity term."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PreferredPodTerm(Body, frozen=True, gc=False):
    """A preferred pod term."""

    weight: int = 0
    pod_affinity_term: PodTerm = PodTerm()


class PodAffinity(Body, frozen=True, gc=False):
    """spec.affinity.podAffinity, and likewise podAntiAffinity."""

    required: list[PodTerm] | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredPodTerm] | None = msgspec.field(
        default=None,
        name="preferredDuringSchedulingIgnoredDuringExecution",
    )


class Affinity(Body, frozen=True, gc=False):
    """spec.affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(Body, frozen=True, gc=False):
    """An entry of spec.topologySpreadConstraints."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class Toleration(Body, frozen=True, gc=False):
    """An entry of spec.tolerations."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Port(Body, frozen=True, gc=False):
    """A port of a container."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ResourceRequirements(Body, frozen=True, gc=False):
    """`resources` of a container, of a pod, or of a container's status."""

    requests: Resources | None = None
    limits: Resources | None = None


class RestartRule(Body, frozen=True, gc=False):
    """An entry of a container's restartPolicyRules."""

    action: str = ""


class Container(Body, frozen=True, gc=False):
    """A regular or init container."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: list[Port] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None

    @property
    def sidecar(self) -> bool:
        """For an init container: whether it keeps running beside the regular ones."""
        return self.restart_policy == "Always"


class Present(Body, frozen=True, gc=False):
    """A volume source of which only the presence matters."""


class ClaimSource(Body, frozen=True, gc=False):
    """The persistentVolumeClaim source of a volume."""

    claim_name: str = ""


class ImageSource(Body, frozen=True, gc=False):
    """The image source of a volume."""

    reference: str = ""


class Volume(Body, frozen=True, gc=False):
    """A volume: the sources that a placement plugin looks at. Of the others no plugin asks anything."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    image: ImageSource | None = None
    gce_persistent_disk: Present | None = None
    aws_elastic_block_store: Present | None = None
    iscsi: Present | None = None
    rbd: Present | None = None
    cinder: Present | None = None
    azure_disk: Present | None = None
    azure_file: Present | None = None
    vsphere_volume: Present | None = None
    portworx_volume: Present | None = None


class ResourceClaim(Body, frozen=True, gc=False):
    """An entry of spec.resourceClaims."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Body, frozen=True, gc=False):
    """spec.schedulingGroup: the pods that are placed together or not at all."""

    pod_group_name: str = ""


class SchedulingGate(Body, frozen=True, gc=False):
    """An entry of spec.schedulingGates."""

    name: str = ""


class PodSpec(Body, frozen=True, gc=False):
    """spec of a Pod."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: Resources | None = None
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: list[SchedulingGate] | None = None
    runtime_class_name: str | None = None
    host_network: bool = False
    host_users: bool | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[ResourceClaim] | None = None
    scheduling_group: SchedulingGroup | None = None


class ContainerStatus(Body, frozen=True, gc=False):
    """What a container was given, which differs from its spec while it is being resized."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Resources | None = None


class Condition(Body, frozen=True, gc=False):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(Body, frozen=True, gc=False):
    """status of a Pod."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: Time | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Resources | None = None


class Pod(Body, frozen=True, gc=False):
    """A Pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def terminal(self) -> bool:
        """Whether it has ended: such a pod holds nothing and counts nowhere."""
        return self.status.phase in {"Succeeded", "Failed"}


class Taint(Body, frozen=True, gc=False):
    """An entry of a node's spec.taints."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Body, frozen=True, gc=False):
    """spec of a Node."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class Image(Body, frozen=True, gc=False):
    """An entry of a node's status.images."""

    names: list[str] | None = None
    size_bytes: int = 0


class NodeAddress(Body, frozen=True, gc=False):
    """An entry of status.addresses."""

    type: str = ""
    address: str = ""


class NodeStatus(Body, frozen=True, gc=False):
    """status of a Node."""

    capacity: Resources | None = None
    allocatable: Resources | None = None
    images: list[Image] | None = None
    declared_features: list[str] | None = None
    addresses: list[NodeAddress] | None = None


class Node(Body, frozen=True, gc=False):
    """A Node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(Body, frozen=True, gc=False):
    """A Namespace."""

    metadata: Metadata = Metadata()


class PriorityClass(Body, frozen=True, gc=False):
    """A PriorityClass."""

    metadata: Metadata = Metadata()
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


class Overhead(Body, frozen=True, gc=False):
    """overhead of a RuntimeClass."""

    pod_fixed: Resources | None = None


class Scheduling(Body, frozen=True, gc=False):
    """scheduling of a RuntimeClass."""

    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Body, frozen=True, gc=False):
    """A RuntimeClass."""

    metadata: Metadata = Metadata()
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None


class ListMetadata(Body, frozen=True, gc=False):
    """metadata of a list: the version it shows, and how to ask for its next page."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class Page(Body, frozen=True, gc=False):
    """A page of a list. The items stay raw, so that a malformed one costs only itself."""

    metadata: ListMetadata = ListMetadata()
    items: list[msgspec.Raw] | None = None


class Event(Body, frozen=True, gc=False):
    """A line of a watch. `type` is ADDED, MODIFIED, DELETED, BOOKMARK (the object holds only a version) or ERROR (the
    object is a `Status`).
    """

    type: str = ""
    object: msgspec.Raw = msgspec.Raw()


class Status(Body, frozen=True, gc=False):
    """What the API server answers instead of an object."""

    message: str = ""
    reason: str = ""
    code: int = 0


class Bookmark(Body, frozen=True, gc=False):
    """Any object, of which only the metadata matters."""

    metadata: Metadata = Metadata()


Kind = typing.TypeVar("Kind", bound=Body)


class Codec(typing.Generic[Kind]):
    """Decodes one kind of object and blames the right field when it can not."""

    def __init__(self, kind: str, body: type[Kind]) -> None:
        self.kind = kind
        self._body = body
        self._decode: Callable[[bytes | msgspec.Raw], Kind] = msgspec.json.Decoder(body).decode

    def decode(self, raw: bytes | msgspec.Raw) -> Kind:
        """The object in this JSON text.

        Raises:
            InputError: It is no JSON, or not of the kind's types.
        """
        try:
            return self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._complaint(raw, error) from error

    def convert(self, manifest: object) -> Kind:
        """The object in this mapping, as a manifest file holds it; null stands for an absent field.

        Raises:
            InputError: It is not of the kind's types.
        """
        try:
            return msgspec.convert(manifest, self._body)
        except msgspec.ValidationError:
            # Perhaps over a null, which few objects have: looking for one in all of them would cost more than the rest.
            return self._convert_without_nulls(manifest)

    def _convert_without_nulls(self, manifest: object) -> Kind:
        try:
            return msgspec.convert(complaints.without_nulls(manifest), self._body)
        except msgspec.ValidationError as error:
            raise complaints.wrong_type(self.kind, self._body, manifest, error) from error

    def _complaint(self, raw: bytes | msgspec.Raw, error: Exception) -> errors.InputError:
        try:
            manifest = json.loads(bytes(raw))
        except (ValueError, RecursionError):
            return errors.InputError(self.kind, problem=f"not valid JSON: {error}", remedy="report it with the object")
        if isinstance(error, msgspec.ValidationError):
            return complaints.wrong_type(self.kind, self._body, manifest, error)
        return errors.InputError(complaints.title(self.kind, manifest), problem=str(error), remedy="correct the object")


POD = Codec("Pod", Pod)
NODE = Codec("Node", Node)
NAMESPACE = Codec("Namespace", Namespace)
PRIORITY_CLASS = Codec("PriorityClass", PriorityClass)
RUNTIME_CLASS = Codec("RuntimeClass", RuntimeClass)
PAGE = Codec("List", Page)
EVENT = Codec("WatchEvent", Event)
STATUS = Codec("Status", Status)
BOOKMARK = Codec("Bookmark", Bookmark)
