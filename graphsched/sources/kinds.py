"""The kinds of API objects there are, so that a misspelt one is told from one that scheduling does not read.

A group of the API itself must hold the kind, and so must our own, in its version; any other group is somebody's custom
resources, whose kinds nobody here can know.
"""

from __future__ import annotations

OWN_GROUP = "graphsched.io"
OWN_VERSION = f"{OWN_GROUP}/v1alpha1"
_CORE = """Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume
PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount"""
_GROUPS = {
    "": _CORE,
    "admissionregistration.k8s.io": """MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
        MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
        ValidatingWebhookConfiguration""",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.k8s.io": "SelfSubjectReview TokenRequest TokenReview",
    "authorization.k8s.io": """LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
        SubjectAccessReview""",
    "autoscaling": "HorizontalPodAutoscaler Scale",
    "batch": "CronJob Job",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "extensions": "",
    OWN_GROUP: "GraphPolicy NetworkLink",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "Ingress IngressClass IPAddress NetworkPolicy ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "resource.k8s.io": """DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate
        ResourcePoolStatusRequest ResourceSlice""",
    "scheduling.k8s.io": "PodGroup PriorityClass Workload",
    "storage.k8s.io": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
KINDS = {group: frozenset(kinds.split()) for group, kinds in _GROUPS.items()}
"""Group → kinds. Groups that are part of the API, with what 1.36 serves, and our own."""


def group_of(api_version: str) -> str:
    """The group of an apiVersion: `apps` of `apps/v1`, nothing of `v1`."""
    return api_version.rpartition("/")[0]


def problem(api_version: str, kind: str) -> str:
    """Why there is no such kind; empty when there is, or when the group is somebody else's."""
    if not api_version:
        known = any(kind in kinds for kinds in KINDS.values())
        return "" if known else f'unknown kind "{kind}"'
    group = group_of(api_version)
    known_kinds = KINDS.get(group)
    if known_kinds is not None and kind not in known_kinds:
        return f'unknown kind "{kind}" in apiVersion "{api_version}"'
    return f'unknown apiVersion "{api_version}"' if group == OWN_GROUP and api_version != OWN_VERSION else ""
