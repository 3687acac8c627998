"""
Programs started beside a test are watched, bounded and never left behind.

Real: the processes, which are shell commands. No control plane is needed.
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

from tests.controlplane import processes


def test_a_process_that_dies_is_named_with_the_end_of_its_log(tmp_path: pathlib.Path) -> None:
    """Waiting for a process that has died ends at once and says why it died."""
    process = processes.Process("teller", ["sh", "-c", "echo no room left; exit 3"], log=tmp_path / "teller.log")

    with pytest.raises(processes.ProcessDiedError, match=r"teller ended with code 3(?s:.*)no room left"):
        processes.wait_until(lambda: False, what="never", timeout_s=20, watched=(process,))


def test_a_started_process_does_not_outlive_its_parent(tmp_path: pathlib.Path) -> None:
    """Where the tests themselves are killed, nothing that they started stays."""
    starter = tmp_path / "starter.py"
    starter.write_text(
        "import pathlib, signal\n"
        "from tests.controlplane import processes\n"
        f"child = processes.Process('child', ['sleep', '600'], log=pathlib.Path({str(tmp_path / 'log')!r}))\n"
        "print(child.pid, flush=True)\n"
        "signal.pause()\n",
    )
    root = str(pathlib.Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen([sys.executable, starter], stdout=subprocess.PIPE, env=environment, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        # The promise holds from the moment the program itself runs: before that, setpriv has not made it yet.
        command = pathlib.Path(f"/proc/{child}/cmdline")
        processes.wait_until(lambda: command.read_bytes().startswith(b"sleep"), what="the child runs", timeout_s=20)
        parent.send_signal(signal.SIGKILL)

    processes.wait_until(lambda: not _runs(child), what="the child is gone", timeout_s=20)


def test_a_wait_ends_at_its_deadline_and_says_for_what() -> None:
    """A wait that is not met raises, naming what was waited for."""
    with pytest.raises(processes.DeadlineError, match="the cows come home"):
        processes.wait_until(lambda: False, what="the cows come home", timeout_s=0.05)


def test_a_process_that_ignores_sigterm_is_ended_all_the_same(tmp_path: pathlib.Path) -> None:
    """Stopping insists with SIGKILL."""
    process = processes.Process(
        "stubborn",
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"],
        log=tmp_path / "stubborn.log",
    )
    processes.wait_until(lambda: "ready" in process.tail(), what="the trap is set", timeout_s=20, watched=(process,))

    assert process.stop(timeout_s=0.2) == -signal.SIGKILL


def test_usage_counts_the_processes_that_a_process_starts(tmp_path: pathlib.Path) -> None:
    """A scheduler's workers are part of what it costs."""
    busy = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    process = processes.Process("parent", [sys.executable, "-c", busy], log=tmp_path / "parent.log")
    try:
        processes.wait_until(lambda: process.cpu_s() > 0.5, what="it used CPU", timeout_s=30, watched=(process,))
        own = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    finally:
        for child in process.children():
            os.kill(child, signal.SIGKILL)
        process.kill()

    assert sum(map(int, own)) < 0.4 * os.sysconf("SC_CLK_TCK")


def test_free_ports_are_free_and_out_of_reach_of_outgoing_connections() -> None:
    """The ports can be listened on, and lie below those that clients are given."""
    ports = processes.free_ports(3)
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))

    assert len(set(ports)) == 3
    assert max(ports) < lowest


def _runs(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    # A zombie waits only for its new parent to look at it.
    return state != "Z"
