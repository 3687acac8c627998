"""Reads a YAML file of settings, as far as YAML goes.

Comes in: a path. Goes out: a mapping of whatever the file holds, or an `InputError` with place, problem and remedy;
what the names and values mean is for `settings` to say.

Invariant: nothing in the file is dropped unseen, so that a name given twice is an error.
"""

from __future__ import annotations

import pathlib
import typing

import yaml

from graphsched.base.values import errors

FILE_BYTES_MAX = 1 << 20
"""A configuration is a screen long; what is bigger is another file."""
_SHOWN_MAX = 200
"""Characters of a library's words in a message."""


class _Loader(yaml.SafeLoader):
    """Refuses a name that is given twice, where the library takes the last one."""

    def compose_mapping_node(self, anchor: typing.Any) -> yaml.MappingNode:
        """Look at the names before merge keys add those that may be given again."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for name in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if name.value in seen:
                problem = f'"{name.value}" is given twice'
                raise yaml.constructor.ConstructorError(None, None, problem, name.start_mark)
            seen.add(name.value)
        return node


def read(path: str) -> dict[typing.Any, typing.Any]:
    """What the file holds; an empty file is an empty mapping.

    Raises:
        InputError: There is no such file, or it holds no YAML mapping.
    """
    try:
        with pathlib.Path(path).open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise errors.InputError(path, problem=problem, remedy="--config names a YAML file") from error
    if len(raw) > FILE_BYTES_MAX:
        raise errors.InputError(path, problem="larger than 1 MiB", remedy="--config names a configuration file")
    loaded = _parsed(raw, path)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise errors.InputError(path, problem="not a mapping", remedy="write settings as `name: value`")
    return loaded


_KNOWN = {"but found another document": "a second document begins"}
"""What the library says of half a sentence."""


def _parsed(raw: bytes, path: str) -> object:
    where = ""
    cause: Exception
    try:
        return yaml.load(raw, Loader=_Loader)  # noqa: S506  a safe one
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        problem, cause = str(getattr(error, "problem", None) or "not a text in UTF-8"), error
    except UnicodeDecodeError as error:
        problem, cause = "not a text in UTF-8", error
    except RecursionError as error:
        problem, cause = "nested too deeply", error
    except (ValueError, LookupError, AttributeError) as error:
        # How the library says that a value is not what it looks like: a date of month 99, `!!bool` of another word.
        problem, cause = f"a value can not be read: {error}", error
    problem = _KNOWN.get(problem, problem).replace("\n", " ")[:_SHOWN_MAX]
    raise errors.InputError(
        path, where, problem=f"not valid YAML: {problem}", remedy="see docs/configuration.md"
    ) from cause
