"""Write the tables of the chart's README from `rights.yaml` and `values.yaml`; a test compares the two.

Comes in: the rights, and the values with the comments above them. Goes out: the README with what stands between its
markers made anew. Run it after changing a value, its comment or a right: `python -m scripts.chart_page`.
"""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import yaml

CHART = pathlib.Path(__file__).resolve().parents[1] / "charts" / "graphsched"
PAGE = CHART / "README.md"


def page() -> str:
    """The whole README."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("rights", rights()), ("values", values())):
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
        head, _, rest = text.partition(begin)
        text = head + begin + "".join(table) + end + rest.partition(end)[2]
    return text


def rights() -> Iterator[str]:
    """The table of the rights."""
    yield "| API group | Resources | Verbs | Where | If | For |\n|---|---|---|---|---|---|\n"
    for right in yaml.safe_load((CHART / "rights.yaml").read_text(encoding="utf-8")):
        groups = ", ".join(group or "core" for group in right["apiGroups"])
        resources, verbs = ", ".join(right["resources"]), ", ".join(right["verbs"])
        yield f"| {groups} | {resources} | {verbs} | {right['scope']} | {_condition(right)} | {right['need']} |\n"


def _condition(right: dict[str, Any]) -> str:
    each = (f"`{name}`: {' or '.join(map(_plain, values))}" for name, values in right.get("if", {}).items())
    return ", ".join(each) or "always"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def values() -> Iterator[str]:
    """The table of the values."""
    yield "| Value | Default | Meaning |\n|---|---|---|\n"
    for name, default, comment in explained():
        yield f"| `{name}` | `{json.dumps(default, ensure_ascii=False)}` | {comment} |\n"


def explained() -> Iterator[tuple[str, Any, str]]:
    """Every value that has no values of its own: its name with dots, its default, and the comment above it."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    yield from _walk(yaml.compose(text), yaml.safe_load(text), text.splitlines(), "")


def _walk(node: yaml.Node | None, default: Any, lines: list[str], prefix: str) -> Iterator[tuple[str, Any, str]]:
    if not isinstance(node, yaml.MappingNode):
        raise TypeError(f"values.yaml: {prefix or 'the whole'} is no mapping")
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        comment = _comment(lines, key.start_mark.line)
        # A mapping with a comment of its own is explained as a whole.
        if isinstance(value, yaml.MappingNode) and value.value and not comment:
            yield from _walk(value, default[key.value], lines, f"{name}.")
        else:
            yield name, default[key.value], comment


def _comment(lines: list[str], line: int) -> str:
    """The comment lines directly above a line, as one text."""
    found: list[str] = []
    while line > 0 and (matched := re.fullmatch(r"\s*# ?(.*)", lines[line - 1])):
        found.insert(0, matched[1])
        line -= 1
    return " ".join(found)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
