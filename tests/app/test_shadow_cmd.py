"""`graphsched shadow` says in a table, a line and an exit code whether another scheduler's choices agree with ours."""

import http.server
import json
import threading
from collections.abc import Iterator

import msgspec
import pytest

from graphsched.app import cli, shadow, shadow_cmd
from graphsched.observe import metrics

Result = shadow.Result


def tally(*findings: shadow.Finding, agreed: int = 0) -> shadow.Tally:
    """These findings, and so many pods on our node."""
    made = shadow.Tally("default-scheduler", kept=100, meters=metrics.Metrics(profile="test", version="0").modes)
    for _ in range(agreed):
        made.add(shadow.Finding(made.next_number, "default/web", 0.0, Result.SAME, "n1", "n1"))
    for finding in findings:
        made.add(finding)
    return made


def finding(pod: str, result: Result, **fields: object) -> shadow.Finding:
    """A finding about `default/pod`."""
    made = shadow.Finding(1, f"default/{pod}", 0.0, result, "n1", "n2")
    return msgspec.structs.replace(made, **fields)


REPORTS = {
    "good": tally(finding("even", Result.EQUAL), agreed=98).report({None: 2}, seconds=7980.0),
    "wrong": tally(
        finding("near", Result.LOWER, our_score=300, their_score=299),
        finding("far", Result.LOWER, our_score=300, their_score=250, in_flight=2),
        finding("bad", Result.REFUSED, plugin="TaintToleration", reasons=("node(s) had untolerated taint(s)",)),
        finding("claim", Result.NONE, ours="", reasons=("0/2 nodes are available: no claims.",)),
        finding("left", Result.PENDING, theirs=""),
        agreed=994,
    ).report({Result.UNSCHEDULABLE: 1}, seconds=59.0),
    "nothing": tally().report({}, seconds=1.0),
    "other": msgspec.structs.replace(tally(agreed=1).report({}, seconds=1.0), results={Result.SAME: 1}),
}


class _Scheduler(http.server.BaseHTTPRequestHandler):
    """The debug endpoint of schedulers in mode shadow; the first part of the path says which."""

    def do_GET(self) -> None:
        """Answer with one of the reports."""
        name = self.path.split("/")[1]
        body = msgspec.json.encode(REPORTS[name]) if name in REPORTS else b'{"error":"this scheduler compares not"}'
        self.send_response(200 if name in REPORTS else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of such schedulers."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Scheduler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_agreement_is_a_yes(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The last line sums up, and the exit code is 0."""
    assert 0 == cli.execute(["shadow", "--server", f"{server}/good"])
    lines = capsys.readouterr().out.splitlines()
    assert "default-scheduler beside graphsched for 2h13m, 99 pods compared." == lines[0]
    assert "  2 pods wait; too early to say anything." in lines
    assert "99 of 99 pods: same node or equal score (100.0 %); 0 on nodes we would refuse." == lines[-1]


def test_a_node_that_would_be_refused_is_a_no_however_many_agree(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worst come first, each with the reason, and the shares are never rounded up."""
    assert 1 == cli.execute(["shadow", "--server", f"{server}/wrong", "--at-least", "0"])
    out = capsys.readouterr().out
    worst = out[out.index("The worst of 5 disagreements:") :].splitlines()[2:7]
    assert ["bad", "claim", "left", "far", "near"] == [line.split()[0].partition("/")[2] for line in worst]
    assert "refused by TaintToleration: node(s) had untolerated taint(s)" in worst[0]
    assert "no node found: 0/2 nodes are available: no claims." in worst[1]
    assert "score 250 instead of 300 (2 other pods just being bound)" in worst[3]
    assert "by 25.5 points on average, 50 at most" in out
    assert (
        "995 of 1,000 pods: same node or equal score, or pending with both (99.5 %); 1 on nodes we would refuse, "
        "1 placed that we would leave pending, 1 left pending that we would place." == out.splitlines()[-1]
    )


def test_nothing_compared_is_a_no(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Trust needs evidence."""
    assert 1 == cli.execute(["shadow", "--server", f"{server}/nothing"])
    assert "No pod of default-scheduler was compared yet." == capsys.readouterr().out.splitlines()[-1]


def test_the_report_can_be_had_as_json(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the numbers and the line that sums up."""
    cli.execute(["shadow", "--server", f"{server}/good", "--output", "json"])
    found = json.loads(capsys.readouterr().out)
    assert (99, 99, 98) == (found["compared"], found["agreed"], found["results"]["same"])
    assert found["verdict"].startswith("99 of 99 pods")


def test_a_scheduler_in_another_mode_is_told_in_one_line(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with the scheduler's own words."""
    assert 2 == cli.execute(["shadow", "--server", f"{server}/none"])
    assert f"graphsched: {server}/none: this scheduler compares not\n" == capsys.readouterr().err


def test_a_share_that_is_none_is_refused(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anybody is asked."""
    assert 2 == cli.execute(["shadow", "--server", f"{server}/good", "--at-least", "101"])
    assert "graphsched: --at-least: 101 is no share (use 0 to 100)\n" == capsys.readouterr().err


@pytest.mark.parametrize(
    ("agreed", "lower", "at_least", "yes"), [(95, 5, 95.0, True), (94, 6, 95.0, False), (999, 1, 100.0, False)]
)
def test_the_share_that_must_agree_is_exact(agreed: int, lower: int, at_least: float, yes: bool) -> None:
    """No rounding helps."""
    findings = [finding(f"p{number}", Result.LOWER, our_score=2, their_score=1) for number in range(lower)]
    report = tally(*findings, agreed=agreed).report({}, seconds=1.0)

    assert yes is shadow_cmd.trusted(report, at_least=at_least)


def test_a_report_without_a_count_is_of_another_version(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not counted can not be trusted to be none."""
    assert 2 == cli.execute(["shadow", "--server", f"{server}/other"])
    assert "not an answer of graphsched of this version (it does not count " in capsys.readouterr().err
