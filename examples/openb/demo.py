"""The main job in a minute, without a cluster: a production GPU trace is scheduled, explained and drawn.

Comes in: the two CSV files beside this script. Goes out: the result on stdout, progress on stderr, and an HTML report
under out/. What it prints at the end is what to try next.
"""

import argparse
import pathlib
import sys
import time

from graphsched.app import offline, reporting, simulate, simulation, terminal
from graphsched.base.values import errors

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NODES = HERE / "openb_node_list_gpu_node.csv"
PODS = HERE / "openb_pod_list_default.csv"
REPORT = ROOT / "out" / "openb-report.html"

TITLE = "openb: 8,152 pods on 1,213 GPU nodes"
SUBTITLE = (
    "A production GPU-sharing trace, decided pod by pod in order of arrival by the engine that also runs live. Pods "
    "never leave; a part of a GPU never straddles two devices."
)


def main() -> int:
    """Run the demo; returns 0 although some pods stay pending: that is what the trace is about."""
    parser = argparse.ArgumentParser(description="Schedule the openb trace offline and write a report.")
    parser.add_argument("--report", type=pathlib.Path, default=REPORT, help="where the HTML report goes")
    report: pathlib.Path = parser.parse_args().report

    begun = time.perf_counter()
    cluster = offline.load([str(NODES), str(PODS)])
    offline.settle()
    heading("Scheduling the openb trace")
    print(f"  {len(cluster.nodes):,} nodes, {len(cluster.pending):,} pods, one decision after the other\n")
    with terminal.progress("  deciding", len(cluster.pending)) as advance:
        run = simulation.run(cluster, advance=advance)
    simulate.tables(run, names=False)
    print(f"\n  {simulate.speed(run)}")

    heading("Why is it there?")
    say(reporting.explained(run, good_placement(run)))
    heading("Why is it pending?")
    say(reporting.explained(run, run.pending[-1].pod))

    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(reporting.html(run, title=TITLE, subtitle=SUBTITLE, timings=True), encoding="utf-8")
    heading("Pictures")
    print(f"  {report}\n  open it in a browser: where the load is, how it filled up, what refused the pending pods")
    what_next()
    terminal.note(f"done in {time.perf_counter() - begun:.1f} s")
    return 0


def good_placement(run: simulation.Run) -> str:
    """The last pod that shares a GPU and had many nodes to choose from: its scores tell something."""
    sharing = {pod.full_name for pod in run.cluster.pods if pod.spec.gpu is not None and pod.spec.gpu.milli < 1000}
    return next(
        (each.pod for each in reversed(run.placed) if each.pod in sharing and each.feasible > 20), run.placed[0].pod
    )


def heading(text: str) -> None:
    """A line that stands out, in bold where that is possible."""
    print(f"\n\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}")


def say(text: str) -> None:
    """An explanation, indented."""
    print("\n".join(f"  {line}" for line in text.splitlines()))


def what_next() -> None:
    """Close with commands that work as they are."""
    heading("What next")
    data = "examples/openb"
    print(
        f"""\
  any pod of the trace   .venv/bin/graphsched explain openb-pod-1639 {data}/*.csv --simulate
  your own cluster       kubectl get nodes,pods -A -o json | .venv/bin/graphsched simulate -
  one node by one        .venv/bin/graphsched evaluate --help
  the graph itself       .venv/bin/graphsched graph stats {data}/*.csv   (docs/graph.md)
  a live control plane   make cluster-demo
  how it works           docs/architecture.md"""
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except errors.InputError as error:
        sys.exit(f"demo: {error}")
