"""Programs run beside a test: started, watched, ended, never left behind.

In comes a command; out goes a ``Process`` whose output is in a log file.
``cluster.py`` starts the control plane with it, the live benchmark starts the
schedulers. Invariants: a process does not outlive the one that started it, even
where that one is killed; every wait has a deadline; a process that died is reported
with the end of its log.
"""

from __future__ import annotations

import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

#: Log lines shown when a process died.
TAIL_LINES = 15

#: How long a process may take to end by itself once asked.
STOP_S = 10.0

_POLL_S = 0.02
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessDiedError(Exception):
    """A process ended that should be running; the text holds the end of its log."""


class DeadlineError(Exception):
    """Something did not happen in time; the text says what."""


class Process:
    """One running program."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | os.PathLike[str]],
        *,
        log: pathlib.Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start ``command``, with output appended to ``log``.

        Only the main thread may start one: the kernel ends the child when the starting
        *thread* ends, which is how nothing is left behind.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(f"{name} must be started from the main thread (see Process)")
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            raise RuntimeError("setpriv is missing: install the Debian package util-linux")
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [setpriv, "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else {**os.environ, **environment},
                # Ctrl-C goes to the tests, which then stop the processes in order.
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    def is_alive(self) -> bool:
        """Whether it is still running."""
        return self._popen.poll() is None

    def require_alive(self) -> None:
        """Raise ``ProcessDiedError`` if it has ended."""
        code = self._popen.poll()
        if code is not None:
            ended = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            raise ProcessDiedError(f"{self.name} {ended}; the end of {self.log}:\n{self.tail()}")

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The last lines of the log, indented."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(f"  {line[:500]}" for line in text.splitlines()[-lines:])

    def kill(self) -> None:
        """End it at once with SIGKILL, and wait until it is gone."""
        if self.is_alive():
            self._popen.kill()
        self._popen.wait(timeout=STOP_S)

    def stop(self, *, timeout_s: float = STOP_S) -> int:
        """Ask it to end with SIGTERM, insist with SIGKILL; return the exit code."""
        if self.is_alive():
            self._popen.send_signal(signal.SIGTERM)
        try:
            return self._popen.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait(timeout=STOP_S)

    def send_signal(self, number: signal.Signals) -> None:
        """Send one signal."""
        self._popen.send_signal(number)

    def pause(self) -> None:
        """Stop it where it is (SIGSTOP), and return once all its threads stand still; ``resume`` lets it go on."""
        self.send_signal(signal.SIGSTOP)
        wait_until(self._stands_still, what=f"{self.name} stands still", timeout_s=STOP_S, watched=(self,))

    def resume(self) -> None:
        """Let it go on after ``pause`` (SIGCONT)."""
        self.send_signal(signal.SIGCONT)

    def _stands_still(self) -> bool:
        threads = pathlib.Path(f"/proc/{self.pid}/task").iterdir()
        return all(_stat(f"{self.pid}/task/{thread.name}")[0] in {"T", "0"} for thread in threads)

    def wait(self, *, timeout_s: float) -> int:
        """Wait until it ends by itself and return the exit code, or raise ``DeadlineError``."""
        try:
            return self._popen.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise DeadlineError(f"{self.name} still runs after {timeout_s:.0f} s") from error

    def children(self) -> list[int]:
        """The process ids of all that it started and that still run, theirs included."""
        parents = _parents()
        found = [self.pid]
        for pid in found:
            found.extend(child for child, parent in parents.items() if parent == pid)
        return found[1:]

    def cpu_s(self) -> float:
        """Seconds of CPU used so far, user and system, by it and by all that it started."""
        ticks = 0
        for pid in [self.pid, *self.children()]:
            # utime, stime, and both of the children that have ended.
            ticks += sum(map(int, _stat(pid)[11:15]))
        return ticks / _TICKS_PER_S

    def rss_peak_bytes(self) -> int:
        """The most memory that was resident at once (VmHWM), added up over it and all that it started."""
        total = 0
        for pid in [self.pid, *self.children()]:
            try:
                lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
        return total * 1024


def _stat(pid: int | str) -> list[str]:
    """The fields of /proc/PID/stat (or of PID/task/TID) after the program's name; zeros where the process is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ["0"] * 50
    # The name stands in brackets and may itself hold spaces and brackets.
    return text.rpartition(")")[2].split()


def _parents() -> dict[int, int]:
    """Each running process's parent."""
    pids = [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]
    return {pid: int(_stat(pid)[1]) for pid in pids}


def wait_until(
    happened: Callable[[], bool],
    *,
    what: str,
    timeout_s: float,
    watched: Sequence[Process] = (),
) -> None:
    """Poll ``happened`` until it is true.

    Raises ``ProcessDiedError`` as soon as one of ``watched`` ends, ``DeadlineError`` after
    ``timeout_s`` with the end of the logs.
    """
    deadline = time.monotonic() + timeout_s
    while not happened():
        for process in watched:
            process.require_alive()
        if time.monotonic() > deadline:
            tails = "\n".join(f"{process.log}:\n{process.tail()}" for process in watched)
            raise DeadlineError(f"not after {timeout_s:.0f} s: {what}\n{tails}")
        time.sleep(_POLL_S)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on and that no outgoing connection will be given.

    They lie below the kernel's range for outgoing connections: else, while a server restarts
    on its port, some client's connection may take that port first.
    """
    range_text = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()
    top = int(range_text.split()[0])
    candidates = list(range(max(1024, top - 12_000), top))
    random.SystemRandom().shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            return found
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
    raise RuntimeError(f"no {count} free ports below {top} on 127.0.0.1")
