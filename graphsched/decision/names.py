"""Names of the plugins, in the order in which kube-scheduler's default profile runs their filters.

They are part of the machine interface: refusals, scores, metrics and the queue's wake-up table go by them. Those that
begin with Graph are this project's own.
"""

from __future__ import annotations

SCHEDULING_GATES = "SchedulingGates"
NODE_UNSCHEDULABLE = "NodeUnschedulable"
NODE_NAME = "NodeName"
TAINT_TOLERATION = "TaintToleration"
NODE_AFFINITY = "NodeAffinity"
NODE_PORTS = "NodePorts"
NODE_RESOURCES_FIT = "NodeResourcesFit"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
INTER_POD_AFFINITY = "InterPodAffinity"
DYNAMIC_RESOURCES = "DynamicResources"
BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
IMAGE_LOCALITY = "ImageLocality"
NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
GPU_DEVICES = "GraphDevices"
"""The ledger of shareable GPUs."""
POOL = "GraphPool"
"""Keeps to the nodes of a pool of our own."""
HEADROOM = "GraphHeadroom"
"""Keeps a share of every node free."""
REJECTIONS = "GraphRejections"
"""Takes points from nodes whose kubelet has turned pods of ours away of late."""
UNSUPPORTED = "GraphUnsupported"
"""Refuses what this version does not evaluate, so that it is never ignored."""
