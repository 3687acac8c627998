"""A real Prometheus on loopback that scrapes one target every second.

Comes in: where the target listens. Goes out: answers of its HTTP API.
"""

import contextlib
import json
import pathlib
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.controlplane import processes
from tests.monitoring import rules, tools

JOB = "graphsched"
START_S = 30.0


class Prometheus:
    """A running Prometheus."""

    def __init__(self, process: processes.Process, port: int) -> None:
        self.process = process
        self._port = port

    def ready(self) -> bool:
        """Whether it answers queries."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5.0) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def query(self, expression: str) -> list[float]:
        """The values of an expression now, without those that are no number."""
        result = self._get("/api/v1/query", query=expression)["result"]
        values = [float(sample["value"][1]) for sample in result]
        return [value for value in values if value == value]  # noqa: PLR0124  NaN is not itself

    def rules(self) -> list[dict[str, Any]]:
        """The rules with how they are doing."""
        return [rule for group in self._get("/api/v1/rules")["groups"] for rule in group["rules"]]

    def _get(self, path: str, **query: str) -> Any:
        address = f"http://127.0.0.1:{self._port}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=10.0) as answer:
            return json.load(answer)["data"]


@contextlib.contextmanager
def scraping(port: int, folder: pathlib.Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes `port` of loopback and evaluates the alerts; it ends with the block."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules.FILE)],
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
    }
    file = folder / "prometheus.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    (listening,) = processes.free_ports(1)
    process = processes.Process(
        "prometheus",
        [
            *(tools.program("prometheus"), f"--config.file={file}", f"--storage.tsdb.path={folder / 'series'}"),
            f"--web.listen-address=127.0.0.1:{listening}",
        ],
        log=folder / "prometheus.log",
    )
    running = Prometheus(process, listening)
    try:
        processes.wait_until(running.ready, what="Prometheus is ready", timeout_s=START_S, watched=(process,))
        yield running
    finally:
        process.kill()
