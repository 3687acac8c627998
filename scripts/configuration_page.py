"""Write docs/configuration.md from the declarations in `graphsched.app.settings`; a test compares the two.

Comes in: the settings' structs, their defaults and docstrings. Goes out: the page. Run it after changing a setting:
`python -m scripts.configuration_page`.
"""

import inspect
import pathlib
import re
import typing
from collections.abc import Iterator

import msgspec

from graphsched.app import groups, settings

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "configuration.md"

_HEAD = """\
# Configuration

`graphsched run --config FILE` reads a YAML file; every setting has a default, so the empty file is a valid one. Flags
win over the file. A name nobody knows is an error with the nearest known one, never ignored.

```yaml
schedulerName: graph-scheduler
binding:
  concurrency: 64
log:
  format: json
profile:
  weights:
    NodeResourcesFit: 2
```

`simulate` and `explain` take the same file with `--config`, so that a what-if judges nodes as the live scheduler does.
Credentials come from `--kubeconfig`, `$KUBECONFIG`, the pod's service account or `~/.kube/config`, in this order;
client certificates, tokens (re-read and renewed), and exec plugins work as in kubectl.

This page is written by `python -m scripts.configuration_page` from `graphsched/app/settings.py`.
"""


def page() -> str:
    """The whole page."""
    flags = {field: flag for flag, field in settings.FLAGS.items()}
    return _HEAD + "".join(_group(settings.Settings, "", flags))


def _group(group: type[msgspec.Struct], prefix: str, flags: dict[str, str]) -> Iterator[str]:
    """A table of the group's own settings, then the groups within."""
    hints = typing.get_type_hints(group, include_extras=False)
    texts = _attributes(group)
    plain: list[msgspec.structs.FieldInfo] = []
    nested: list[msgspec.structs.FieldInfo] = []
    for field in msgspec.structs.fields(group):
        kind = hints[field.name]
        (nested if isinstance(kind, type) and issubclass(kind, groups.Group) else plain).append(field)
    yield f"\n## {prefix.rstrip('.') or 'Top level'}\n\n"
    if prefix:
        yield f"{(inspect.getdoc(group) or '').partition(chr(10))[0]}\n\n"
    yield "| Setting | Default | Meaning |\n|---|---|---|\n"
    for field in plain:
        name = f"{prefix}{field.encode_name}"
        flag = f" Flag: `{flags[name]}`." if name in flags else ""
        yield f"| `{name}` | {_default(field)} | {texts[field.name]}{flag} |\n"
    for field in nested:
        yield from _group(hints[field.name], f"{prefix}{field.encode_name}.", flags)


def _attributes(group: type[msgspec.Struct]) -> dict[str, str]:
    """What the docstring says of each attribute."""
    text = (inspect.getdoc(group) or "").partition("Attributes:\n")[2]
    found = re.findall(r"^ {4}(\w+): ((?:.+\n?(?: {8}.+\n?)*))", text, flags=re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in found}


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default if field.default is not msgspec.NODEFAULT else None
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value in ("", (), {}, None):
        return "–"
    return f"`{msgspec.json.encode(value).decode()}`".replace('`"', "`").replace('"`', "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
