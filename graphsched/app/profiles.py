"""A KubeSchedulerConfiguration as a profile.

The `config` of an `evaluate` request comes in as a plain mapping, a `Profile` goes out. What would make a difference
and can not be honoured is an `InputError` with the field's path: a profile that is followed in part answers another
question than was asked.
"""

from __future__ import annotations

import typing

import msgspec

from graphsched.base.kube import selectors, wire
from graphsched.base.values import errors
from graphsched.decision import names, profile

_MAPPING = dict[str, typing.Any]

_KINDS = frozenset({"", "KubeSchedulerConfiguration"})
_WITHOUT_EFFECT = frozenset(
    {
        "apiVersion",
        "kind",
        "parallelism",
        "leaderElection",
        "clientConnection",
        "enableProfiling",
        "enableContentionProfiling",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "delayCacheUntilActive",
    },
)
"""Top-level fields that steer the process, or which nodes are looked at; here every node always is."""
_FILTERS = frozenset(
    {
        names.NODE_UNSCHEDULABLE,
        names.NODE_NAME,
        names.TAINT_TOLERATION,
        names.NODE_AFFINITY,
        names.NODE_PORTS,
        names.NODE_RESOURCES_FIT,
        names.POD_TOPOLOGY_SPREAD,
        names.INTER_POD_AFFINITY,
        names.NODE_DECLARED_FEATURES,
        names.GRAPH_PATH,
    },
)
_ABSENT = frozenset(
    {
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        names.DYNAMIC_RESOURCES,
        "DefaultPreemption",
        "DefaultBinder",
        "PrioritySort",
        "SchedulingGates",
    },
)
"""Plugins of the default profile whose part this version refuses or does elsewhere: naming them changes nothing."""
_WEIGHTS = {**profile.DEFAULT_WEIGHTS, names.DYNAMIC_RESOURCES: 2, **profile.GRAPH_WEIGHTS}
"""Of all that score in the default profile. DynamicResources never skips; without claims it gives every node 0. Ours do
skip where a pod gives them no reason."""
_POINTS = ("multiPoint", "preFilter", "filter", "preScore", "score")


def from_configuration(config: _MAPPING, *, scheduler_name: str) -> profile.Profile:
    """The profile for `scheduler_name`: the one of that name, or the only one.

    Raises:
        InputError: A field is unknown, of the wrong type, or asks for what this version can not do.
    """
    _known(config, _WITHOUT_EFFECT | {"profiles", "extenders"}, "")
    if not isinstance(config.get("kind", ""), str) or config.get("kind", "") not in _KINDS:
        raise errors.InputError("kind", problem=f"is {config['kind']}", remedy="say KubeSchedulerConfiguration")
    if config.get("extenders"):
        raise errors.InputError("extenders", problem="are not supported", remedy="leave them out")
    profiles = _listed(config.get("profiles"), "profiles")
    if not profiles:
        return profile.Profile(scheduler_name=scheduler_name, weights=dict(_WEIGHTS))
    named = [(index, entry) for index, entry in enumerate(profiles) if entry.get("schedulerName") == scheduler_name]
    if not named and len(profiles) > 1:
        known = ", ".join(str(entry.get("schedulerName", "")) for entry in profiles)
        raise errors.InputError("profiles", problem=f'none is for "{scheduler_name}"', remedy=f"there are: {known}")
    index, entry = named[0] if named else (0, profiles[0])
    return _profile(entry, f"profiles[{index}]", scheduler_name)


def _profile(entry: _MAPPING, place: str, scheduler_name: str) -> profile.Profile:
    _known(entry, {"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"}, place)
    settings = _with_plugins(
        profile.Profile(scheduler_name=str(entry.get("schedulerName") or scheduler_name)),
        _mapped(entry.get("plugins"), f"{place}.plugins"),
        f"{place}.plugins",
    )
    for index, plugin in enumerate(_listed(entry.get("pluginConfig"), f"{place}.pluginConfig")):
        here = f"{place}.pluginConfig[{index}]"
        _known(plugin, {"name", "args"}, here)
        args = _mapped(plugin.get("args"), f"{here}.args")
        settings = _with_arguments(settings, str(plugin.get("name", "")), args, f"{here}.args")
    return settings


def _with_plugins(settings: profile.Profile, plugins: _MAPPING, place: str) -> profile.Profile:
    """Weights of the scores, and the filters that do not run."""
    weights = dict(_WEIGHTS)
    disabled: set[str] = set()
    narrows = True
    # What is said of one extension point wins over multiPoint, whichever comes first.
    for point, raw in sorted(plugins.items(), key=lambda entry: entry[0] != "multiPoint"):
        here = f"{place}.{point}"
        chosen = _mapped(raw, here)
        _known(chosen, {"enabled", "disabled"}, here)
        off = [str(entry.get("name", "")) for entry in _listed(chosen.get("disabled"), f"{here}.disabled")]
        on = _listed(chosen.get("enabled"), f"{here}.enabled")
        if point not in _POINTS:
            if off or on:
                raise errors.InputError(here, problem="can not be changed here", remedy="leave it out")
            continue
        for name in off:
            _check_name(name, f"{here}.disabled", everything=True)
            gone = {*_FILTERS, *_WEIGHTS} if name == "*" else {name}
            if point in {"multiPoint", "score", "preScore"}:
                weights = {plugin: weight for plugin, weight in weights.items() if plugin not in gone}
            if point in {"multiPoint", "filter"}:
                disabled |= gone & _FILTERS
            if point in {"multiPoint", "preFilter"}:
                # The other filters are of no use without what their PreFilter prepares.
                disabled |= (gone & _FILTERS) - {names.NODE_AFFINITY}
                narrows = narrows and names.NODE_AFFINITY not in gone
        for plugin in on:
            name = str(plugin.get("name", ""))
            _check_name(name, f"{here}.enabled")
            usual = {**_WEIGHTS, **profile.ON_REQUEST}
            if point in {"multiPoint", "score"} and name in usual:
                weights[name] = _whole(plugin.get("weight") or usual[name], f"{here}.enabled.weight")
            if point in {"multiPoint", "filter"}:
                disabled.discard(name)
            narrows = narrows or (point in {"multiPoint", "preFilter"} and name == names.NODE_AFFINITY)
    return msgspec.structs.replace(settings, weights=weights, disabled=frozenset(disabled), narrows=narrows)


def _check_name(name: str, place: str, *, everything: bool = False) -> None:
    if (
        name in _FILTERS
        or name in _WEIGHTS
        or name in profile.ON_REQUEST
        or name in _ABSENT
        or (everything and name == "*")
    ):
        return
    raise errors.InputError(
        place, problem=f'no plugin "{name}"', remedy="name one of the default profile, or one of ours"
    )


def _with_arguments(settings: profile.Profile, name: str, args: _MAPPING, place: str) -> profile.Profile:
    args = {key: value for key, value in args.items() if key not in {"apiVersion", "kind"}}
    match name:
        case names.NODE_RESOURCES_FIT:
            return _with_fit(settings, args, place)
        case names.BALANCED_ALLOCATION:
            _known(args, {"resources"}, place)
            resources = _resources(args.get("resources"), f"{place}.resources")
            return msgspec.structs.replace(settings, balance=tuple(each for each, _ in resources) or settings.balance)
        case names.NODE_AFFINITY:
            return _with_affinity(settings, args, place)
        case names.POD_TOPOLOGY_SPREAD:
            return _with_spread(settings, args, place)
        case names.INTER_POD_AFFINITY:
            return _with_neighbours(settings, args, place)
    _check_name(name, place)
    return settings


def _with_fit(settings: profile.Profile, args: _MAPPING, place: str) -> profile.Profile:
    _known(args, {"ignoredResources", "ignoredResourceGroups", "scoringStrategy"}, place)
    strategy = _mapped(args.get("scoringStrategy"), f"{place}.scoringStrategy")
    _known(strategy, {"type", "resources", "requestedToCapacityRatio"}, f"{place}.scoringStrategy")
    if strategy.get("type", "LeastAllocated") != "LeastAllocated":
        problem = f"{strategy['type']} is not supported"
        raise errors.InputError(f"{place}.scoringStrategy.type", problem=problem, remedy="use LeastAllocated")
    resources = _resources(strategy.get("resources"), f"{place}.scoringStrategy.resources")
    return msgspec.structs.replace(
        settings,
        ignored_resources=_texts(args.get("ignoredResources"), f"{place}.ignoredResources"),
        ignored_groups=_texts(args.get("ignoredResourceGroups"), f"{place}.ignoredResourceGroups"),
        allocation=resources or settings.allocation,
    )


def _with_affinity(settings: profile.Profile, args: _MAPPING, place: str) -> profile.Profile:
    _known(args, {"addedAffinity"}, place)
    if not args.get("addedAffinity"):
        return settings
    try:
        affinity = msgspec.convert(args["addedAffinity"], wire.NodeAffinity)
    except msgspec.ValidationError as error:
        raise errors.InputError(f"{place}.addedAffinity", problem=str(error), remedy="correct it") from error
    return msgspec.structs.replace(
        settings,
        added_affinity=selectors.node_terms(affinity),
        added_preferred=selectors.preferred_node_terms(affinity),
    )


def _with_spread(settings: profile.Profile, args: _MAPPING, place: str) -> profile.Profile:
    _known(args, {"defaultConstraints", "defaultingType"}, place)
    given = _listed(args.get("defaultConstraints"), f"{place}.defaultConstraints")
    kind = args.get("defaultingType") or "System"
    if kind not in ("System", "List"):
        problem = f"{kind!r} is not known"
        raise errors.InputError(f"{place}.defaultingType", problem=problem, remedy="use System or List")
    if kind == "System":
        if given:
            problem = "is System, which has constraints of its own"
            raise errors.InputError(f"{place}.defaultingType", problem=problem, remedy="say List")
        return msgspec.structs.replace(settings, default_spread=None)
    for index, entry in enumerate(given):
        _check_default(entry, f"{place}.defaultConstraints[{index}]")
    try:
        constraints = selectors.spread([msgspec.convert(entry, wire.SpreadConstraint) for entry in given], None)
    except msgspec.ValidationError as error:
        raise errors.InputError(f"{place}.defaultConstraints", problem=str(error), remedy="correct it") from error
    if len({(each.topology_key, each.hard) for each in constraints}) < len(constraints):
        problem = "name a topology key twice with the same whenUnsatisfiable"
        raise errors.InputError(f"{place}.defaultConstraints", problem=problem, remedy="remove one")
    return msgspec.structs.replace(settings, default_spread=constraints)


def _check_default(entry: _MAPPING, place: str) -> None:
    """A default constraint is one of a pod's, without the selector, which each pod's own Services give it."""
    if entry.get("labelSelector") is not None:
        problem = "is not for defaults: the Services and the controller of each pod give it"
        raise errors.InputError(f"{place}.labelSelector", problem=problem, remedy="leave it out")
    skew, key, action = entry.get("maxSkew"), entry.get("topologyKey"), entry.get("whenUnsatisfiable")
    if isinstance(skew, bool) or not isinstance(skew, int) or not 1 <= skew < 1 << 31:
        raise errors.InputError(f"{place}.maxSkew", problem=f"{skew!r} is out of range", remedy="use 1 or more")
    if not isinstance(key, str) or not selectors.is_label_key(key):
        raise errors.InputError(f"{place}.topologyKey", problem=f"{key!r} is no label key", remedy="name a node label")
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        problem = f"{action!r} is not known"
        remedy = "use DoNotSchedule or ScheduleAnyway"
        raise errors.InputError(f"{place}.whenUnsatisfiable", problem=problem, remedy=remedy)


def _with_neighbours(settings: profile.Profile, args: _MAPPING, place: str) -> profile.Profile:
    _known(args, {"hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"}, place)
    weight = args.get("hardPodAffinityWeight")
    weight = settings.hard_affinity_weight if weight is None else weight
    if isinstance(weight, bool) or not isinstance(weight, int) or not 0 <= weight <= 100:
        problem = f"{weight!r} is out of range"
        raise errors.InputError(f"{place}.hardPodAffinityWeight", problem=problem, remedy="use 0 to 100")
    ignores = args.get("ignorePreferredTermsOfExistingPods") or False
    if not isinstance(ignores, bool):
        problem = f"{ignores!r} is not true or false"
        raise errors.InputError(f"{place}.ignorePreferredTermsOfExistingPods", problem=problem, remedy="use either")
    return msgspec.structs.replace(settings, hard_affinity_weight=weight, ignore_existing_preferences=ignores)


def _resources(raw: object, place: str) -> profile.ResourceWeights:
    found = []
    for index, entry in enumerate(_listed(raw, place)):
        _known(entry, {"name", "weight"}, f"{place}[{index}]")
        if not isinstance(entry.get("name"), str) or not entry["name"]:
            raise errors.InputError(f"{place}[{index}].name", problem="is missing", remedy="say e.g. cpu")
        found.append((str(entry["name"]), _whole(entry.get("weight") or 1, f"{place}[{index}].weight")))
    return tuple(found)


def _known(mapping: _MAPPING, fields: typing.AbstractSet[str], place: str) -> None:
    unknown = next((field for field in mapping if field not in fields), None)
    if unknown is not None:
        raise errors.InputError(
            f"{place}.{unknown}" if place else unknown,
            problem="is unknown or not supported",
            remedy=f"known: {', '.join(sorted(fields - {'apiVersion', 'kind'}))}",
        )


def _mapped(value: object, place: str) -> _MAPPING:
    """A mapping; nothing stands for the empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise errors.InputError(place, problem="is not a mapping", remedy="see KubeSchedulerConfiguration")
    return value


def _listed(value: object, place: str) -> list[_MAPPING]:
    """A list of mappings; nothing stands for the empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise errors.InputError(place, problem="is not a list", remedy="see KubeSchedulerConfiguration")
    return [_mapped(entry, f"{place}[{index}]") for index, entry in enumerate(value)]


def _texts(value: object, place: str) -> frozenset[str]:
    """A list of texts; nothing stands for the empty one."""
    if value is None:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise errors.InputError(place, problem="is not a list of texts", remedy="see KubeSchedulerConfiguration")
    return frozenset(value)


def _whole(value: object, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1_000_000:
        raise errors.InputError(place, problem=f"{value!r} is not a weight", remedy="use 1 to 1000000")
    return value
