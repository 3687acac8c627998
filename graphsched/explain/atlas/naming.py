"""Which vertex somebody means: a key, or a name that is as short as it may be.

`node/n1`, `n1`, `default/web-0`, `web-0`, `zone=a` and `leaf-12` each mean the vertex that anybody would expect, as
long as there is one; so does what a vertex is called where it is shown, such as the name of a rule, whose key is its
policy and number. Several of the same name are told, and a name that nobody has is answered with those that are close.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Mapping

from graphsched.base.values import errors, keys

_PLAIN = frozenset({keys.Kind.NODE.value, keys.Kind.POD.value, keys.Kind.PLACE.value})
"""Kinds that a name is taken to be of, more or less."""
_SHOWN = 5
_CLOSE = 3
_COMPARED_MAX = 20_000
"""Names that a misspelt one is compared with: some 20 ms for each 1,000."""


def find(known: Iterable[str], text: str, titles: Mapping[str, str] = types.MappingProxyType({})) -> str:
    """The key that `text` means.

    Args:
        known: Keys of all vertices.
        text: A key, a name without its kind, the last part of a name, or a title, also with what its key begins with.
        titles: What vertices are called where they are shown, by key; those whose name it is need not be here.

    Raises:
        InputError: Nobody is called so, or several are.
    """
    every = list(known)

    def titled(key: str) -> tuple[str, ...]:
        title = titles.get(key)
        return () if title is None else (title, f"{_without_kind(key)[0].partition('/')[0]}/{title}")

    # The strictest reading first: a later one counts only where no earlier one finds anything.
    for level in (_whole, _node, _without_kind, _default_namespace, _last_part, titled):
        found = sorted({key for key in every if text in level(key)})
        if len(found) == 1:
            return found[0]
        if found:
            more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
            raise errors.InputError(
                f'vertex "{text}"',
                problem=f"could be {', '.join(found[:_SHOWN])}{more}",
                remedy="name the whole key",
            )
    raise errors.InputError(f'vertex "{text}"', problem="is not in the graph", remedy=_hint(every, text))


def _whole(key: str) -> tuple[str, ...]:
    return (key,)


def _node(key: str) -> tuple[str, ...]:
    return (keys.name_of(keys.VertexKey(key)),) if keys.kind_of(keys.VertexKey(key)) == keys.Kind.NODE else ()


def _without_kind(key: str) -> tuple[str, ...]:
    return (keys.name_of(keys.VertexKey(key)),)


def _default_namespace(key: str) -> tuple[str, ...]:
    return (key.rpartition("/")[2],) if key.startswith(keys.pod_key(keys.DEFAULT_NAMESPACE, "")) else ()


def _last_part(key: str) -> tuple[str, ...]:
    """`a`, `us-east/a`, `zone=a` and `zone=us-east/a` of `domain/topology.kubernetes.io/zone=us-east/a`."""
    name = keys.name_of(keys.VertexKey(key))
    if keys.kind_of(keys.VertexKey(key)) != keys.Kind.DOMAIN:
        return tuple(part for part in (name.rpartition("/")[2], name.partition("/")[2]) if part)
    label, _, path = name.partition("=")
    word, value = label.rpartition("/")[2], path.rpartition("/")[2].rpartition(":")[2]
    return (value, path, f"{word}={value}", f"{word}={path}", f"{label}={value}")


def _hint(every: list[str], text: str) -> str:
    if not every:
        return "it is empty"
    shown: dict[str, str] = {}
    for key in every[:_COMPARED_MAX]:
        for name in (key, *_without_kind(key), *_last_part(key)):
            shown.setdefault(name, key)
    close = difflib.get_close_matches(text, shown, n=_CLOSE * 3, cutoff=0.5)
    keyed = list(dict.fromkeys(shown[name] for name in close))[:_CLOSE]
    if keyed:
        return f"did you mean {' or '.join(keyed)}?"
    return f"it holds e.g. {min(every)}"


def short(key: str) -> str:
    """A key as people write it, which `find` understands: `n1`, `default/web-0`, `zone=eu/a`, `slurm/leaf-12`."""
    kind, _, name = key.partition("/")
    if kind == keys.Kind.DOMAIN:
        label, _, path = name.partition("=")
        return f"{label.rpartition('/')[2]}={path}"
    return name if kind in _PLAIN else key
