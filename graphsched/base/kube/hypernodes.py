"""HyperNodes of Volcano, as descriptions: each is a place that contains nodes and other HyperNodes.

Members are named exactly, or by a pattern that is looked for in their names, or, if they are nodes, by labels. Whoever
matches is a member, now or later.
"""

from __future__ import annotations

from graphsched.base.kube import naming, selectors, wire
from graphsched.base.values import descriptions, errors, keys, labels, patterns, places, relations

KIND = "HyperNode"
_PREFIX = "hypernode/"
_MEMBERS = {"Node": descriptions.NODES, KIND: f"{keys.Kind.PLACE.value}/{_PREFIX}"}
"""Type of a member → what the keys of such vertices begin with."""


class Exact(wire.Body, frozen=True, gc=False):
    """`exactMatch` of a selector."""

    name: str = ""


class Pattern(wire.Body, frozen=True, gc=False):
    """`regexMatch` of a selector."""

    pattern: str = ""


class Selector(wire.Body, frozen=True, gc=False):
    """`selector` of a member, one of three kinds."""

    exact_match: Exact | None = None
    regex_match: Pattern | None = None
    label_match: wire.LabelSelector | None = None


class Member(wire.Body, frozen=True, gc=False):
    """An entry of spec.members."""

    type: str = ""
    selector: Selector = Selector()


class Spec(wire.Body, frozen=True, gc=False):
    """spec of a HyperNode."""

    tier: int | None = None
    tier_name: str = ""
    members: list[Member] | None = None


class HyperNode(wire.Body, frozen=True, gc=False):
    """A HyperNode."""

    metadata: wire.Metadata = wire.Metadata()
    spec: Spec = Spec()


CODEC = wire.Codec(KIND, HyperNode)


def describe(body: HyperNode) -> descriptions.Description:
    """What the object says.

    Raises:
        InputError: A member is not one that Volcano would accept.
    """
    name = naming.name_of(KIND, body.metadata)
    spec, by = body.spec, f"{_PREFIX}{name}"
    told = {"tier-name": spec.tier_name} if spec.tier_name else {}
    place = places.Place(by, kind="hypernode", tier=spec.tier, labels=labels.from_mapping(told))
    ties: list[descriptions.Tie] = []
    mentioned: list[places.Place] = []
    memberships: list[descriptions.Membership] = []
    for index, member in enumerate(spec.members or ()):
        with naming.blaming(KIND, body.metadata):
            found = _member(member, place.key, f"spec.members[{index}]")
        if isinstance(found, descriptions.Membership):
            memberships.append(found)
            continue
        if found == place.key:
            # It holds itself, which says nothing.
            continue
        ties.append(descriptions.Tie(place.key, found, relations.Contains(by)))
        if member.type == KIND:
            mentioned.append(places.Place(keys.name_of(found), kind="hypernode"))
    return descriptions.Description(
        by, places=(place,), mentioned=tuple(mentioned), ties=tuple(ties), memberships=tuple(memberships)
    )


def _member(member: Member, holder: keys.VertexKey, field: str) -> keys.VertexKey | descriptions.Membership:
    prefix = _MEMBERS.get(member.type)
    if prefix is None:
        raise errors.InputError(
            f"{field}.type", problem=f'"{member.type}" is not known', remedy="use Node or HyperNode"
        )
    chosen = member.selector
    given = [
        name
        for name, value in (
            ("exactMatch", chosen.exact_match),
            ("regexMatch", chosen.regex_match),
            ("labelMatch", chosen.label_match),
        )
        if value is not None
    ]
    if len(given) != 1:
        problem = f"has {' and '.join(given)} at once" if given else "has no match"
        raise errors.InputError(
            f"{field}.selector", problem=problem, remedy="give one of exactMatch, regexMatch and labelMatch"
        )
    if chosen.exact_match is not None:
        if not chosen.exact_match.name:
            raise errors.InputError(f"{field}.selector.exactMatch.name", problem="is missing", remedy="name the member")
        return keys.VertexKey(prefix + chosen.exact_match.name)
    if chosen.regex_match is not None:
        try:
            patterns.compiled(chosen.regex_match.pattern)
        except errors.InputError as error:
            raise error.within(f"{field}.selector.regexMatch.pattern") from error
        return descriptions.Membership(holder, prefix, pattern=chosen.regex_match.pattern)
    if member.type != "Node":
        problem = "is for nodes only"
        raise errors.InputError(f"{field}.selector.labelMatch", problem=problem, remedy="use exactMatch or regexMatch")
    wanted = selectors.selector(chosen.label_match, f"{field}.selector.labelMatch")
    return descriptions.Membership(holder, prefix, selector=wanted)
