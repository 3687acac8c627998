"""Files of manifests for tests of the commands."""

from __future__ import annotations

import json
import pathlib

from tests.builders import NodeBuilder, PodBuilder


def write(path: pathlib.Path, *builds: NodeBuilder | PodBuilder) -> str:
    """Write manifests as JSON documents, one a line, into a file; returns its path as a user would give it."""
    path.write_text("\n".join(json.dumps(build.manifest()) for build in builds) + "\n", encoding="utf-8")
    return str(path)
