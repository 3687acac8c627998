"""
The chart as files and as helm renders it.

Comes in: `charts/graphsched`, and helm where it is built (`make chart-test`). Goes out: parsed values, schema and rules
for the tests that need no helm, and rendered objects for those that do.
"""

import json
import os
import pathlib
import re
import subprocess
from typing import Any

import yaml

from scripts import build_helm
from tests.architecture import tidy

CHART = tidy.ROOT / "charts" / "graphsched"
# `make chart-test` sets it: there a missing helm is an error and not a remark.
REQUIRED = os.environ.get("GRAPHSCHED_CHART_RENDER") == "required"
KUBERNETES_VERSIONS = ("1.32", "1.36")

Object = dict[str, Any]


def helm() -> pathlib.Path | None:
    """Return the helm that was built, or None."""
    path = build_helm.helm_path()
    return path if path.exists() else None


def chart() -> Object:
    """Return Chart.yaml."""
    return _mapping((CHART / "Chart.yaml").read_text())


def values() -> Object:
    """Return the default values."""
    return _mapping((CHART / "values.yaml").read_text())


def schema() -> Object:
    """Return the schema of the values."""
    read: Object = json.loads((CHART / "values.schema.json").read_text())
    return read


def examples() -> dict[str, Object]:
    """Return the values that the operators' page shows, by what it says of them."""
    text = (tidy.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n# values of the chart: ([^\n]+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return {title: _mapping(block) for title, block in blocks}


def rights() -> list[Object]:
    """Return the list from which the roles are made."""
    read: list[Object] = yaml.safe_load((CHART / "rights.yaml").read_text())
    return read


def rules(scope: str, config: Object) -> list[Object]:
    """Return the rules of the role of a scope with this configuration in effect, without rendering.

    The mode is `shared`, custom resources and policies are followed, and there is no election, unless it says so.
    """
    followed = {"topology": {"crds": "auto"}, "policies": {"enabled": "auto"}}
    config = {"mode": "shared", **followed, "leaderElection": {"enabled": False}, **config}
    found = []
    for right in rights():
        needed = all(_setting(config, name) in values for name, values in right.get("if", {}).items())
        if right["scope"] == scope and needed:
            rule = {name: right[name] for name in ("apiGroups", "resources", "verbs")}
            found.append({**rule, "resourceNames": [_setting(config, right["name"])]} if "name" in right else rule)
    return found


def _setting(config: Object, path: str) -> Any:
    value: Any = config
    for name in path.split("."):
        value = value[name]
    return value


def merged(base: Object, changes: Object) -> Object:
    """Lay `changes` over `base` as helm does: mappings are merged, all else is replaced."""
    result = dict(base)
    for key, value in changes.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def run_helm(changes: Object, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run `helm template` with `changes` over the defaults; helm's own files stay in `folder`."""
    program = helm()
    if program is None:
        raise FileNotFoundError("helm is not built: run 'make chart-test'")
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(changes))
    return subprocess.run(
        # Built outside helm's own tree it believes in Kubernetes 1.20.
        [
            *(program, "template", "sched", CHART, "--namespace", "graphs", "--values", file),
            *("--kube-version", KUBERNETES_VERSIONS[-1]),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"HOME": str(folder), "PATH": ""},
    )


def _mapping(text: str) -> Object:
    read = yaml.safe_load(text)
    if not isinstance(read, dict):
        raise TypeError(f"a mapping is expected, this is {type(read).__name__}")
    return read
