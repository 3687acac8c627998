"""What on a node is taken piece by piece rather than by amount: host ports, shareable GPUs, and the images it holds.

`store` writes; `decision` asks which rows are blocked, which devices have room, how widely an image is spread. All
three are sparse or small, so they live beside the columns instead of among them.
"""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt

from graphsched.base.values import nodes, pods

GPU_MILLI = 1000
"""Thousandths of one shareable GPU."""


class Ports:
    """Host ports in use, by protocol and port, since that is what a newcomer asks for."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def count(self, row: int, ports: tuple[pods.HostPort, ...], *, sign: int) -> None:
        """Add (`sign` 1) or take away (-1) one pod's ports on the row."""
        for port in ports:
            rows = self._holders.setdefault((port.protocol, port.port), {})
            ips = rows.setdefault(row, {})
            ips[port.ip] = ips.get(port.ip, 0) + sign
            if not ips[port.ip]:
                del ips[port.ip]
            if not ips:
                del rows[row]
            if not rows:
                del self._holders[port.protocol, port.port]

    def blocked(self, wanted: tuple[pods.HostPort, ...]) -> set[int]:
        """The rows where at least one of the wanted ports is taken."""
        rows: set[int] = set()
        for port in wanted:
            for row, ips in self._holders.get((port.protocol, port.port), {}).items():
                if any(port.conflicts(pods.HostPort(port.protocol, ip, port.port)) for ip in ips):
                    rows.add(row)
        return rows

    def held(self, row: int) -> list[tuple[pods.HostPort, int]]:
        """The ports taken on the row with how many pods hold each, sorted."""
        return sorted(
            (
                (pods.HostPort(protocol, ip, port), number)
                for (protocol, port), rows in self._holders.items()
                for ip, number in rows.get(row, {}).items()
            ),
            key=lambda entry: (entry[0].protocol, entry[0].port, entry[0].ip),
        )

    def clear(self, row: int) -> None:
        """Nobody holds a port on the row any more, whatever was counted there."""
        for port, rows in list(self._holders.items()):
            if rows.pop(row, None) is not None and not rows:
                del self._holders[port]

    def overlay(self) -> Ports:
        """A copy that can be changed without touching this one."""
        twin = Ports()
        twin._holders = copy.deepcopy(self._holders)
        return twin


class Images:
    """Which nodes hold an image. `version` counts up with every change, since one more holder changes every score."""

    def __init__(self) -> None:
        self.version = 0
        self._sizes: dict[str, dict[int, int]] = {}
        self._arrived: dict[int, int] = {}
        self._arrivals = 0

    def arrive(self, row: int) -> None:
        """A node took the row; it comes after all that are there."""
        self._arrivals += 1
        self._arrived[row] = self._arrivals

    def set(self, row: int, before: tuple[nodes.Image, ...], after: tuple[nodes.Image, ...]) -> None:
        """Replace the images of the row."""
        if before == after:
            return
        self.version += 1
        kept = {name for image in after for name in image.names}
        for image in before:
            for name in image.names:
                holders = self._sizes.get(name)
                if holders is None or name in kept:
                    continue
                holders.pop(row, None)
                if not holders:
                    del self._sizes[name]
        # Backwards, so that the first size counts where a name is listed twice.
        for image in reversed(after):
            for name in image.names:
                self._sizes.setdefault(name, {})[row] = image.size

    def size(self, name: str, row: int) -> int | None:
        """The image's size in bytes as the node on this row has it; None where it does not hold it."""
        return self._sizes.get(name, {}).get(row)

    def holders(self, name: str) -> tuple[npt.NDArray[np.intp], int]:
        """The rows that hold the image, and its size in bytes.

        kube-scheduler keeps one size for each image name. Where nodes disagree it is the one of the node that came
        first, which depends on what is there and not on how it got there.
        """
        sizes = self._sizes.get(name)
        if not sizes:
            return np.zeros(0, np.intp), 0
        first = min(sizes, key=self._arrived.__getitem__) if len(set(sizes.values())) > 1 else next(iter(sizes))
        return np.fromiter(sizes, np.intp, len(sizes)), sizes[first]


class Devices:
    """Shareable GPUs, device-major.

    Attributes:
        free: `free[d]` is an int32 a row of the thousandths left on device d: -1 where the node has no such device,
            which no demand fits, and below 0 where more was given away than there is.
        numbers: int32 a row, how many devices the node has.
    """

    def __init__(self) -> None:
        self.free: npt.NDArray[np.int32] = np.full((0, 0), -1, np.int32)
        self.numbers: npt.NDArray[np.int32] = np.zeros(0, np.int32)

    def resize(self, capacity: int) -> None:
        """Follow the node columns."""
        self._reshape(len(self.free), capacity)
        grown = np.zeros(capacity, np.int32)
        grown[: len(self.numbers)] = self.numbers
        self.numbers = grown

    def set(self, row: int, gpus: int) -> None:
        """Give the row this many wholly free devices; the store counts the pods on it afterwards."""
        if gpus > len(self.free):
            self._reshape(gpus, self.free.shape[1])
        self.free[:, row] = -1
        self.free[:gpus, row] = GPU_MILLI
        self.numbers[row] = gpus

    def count(self, row: int, held: tuple[int, ...], milli: int, *, sign: int) -> None:
        """Take (`sign` 1) or give back (-1) `milli` of each of the devices a pod holds; unknown devices are passed
        over: the node may have lost them.
        """
        for device in held:
            if device < self.numbers[row]:
                self.free[device, row] -= sign * milli

    def fit(self, demand: pods.GpuDemand, rows: npt.NDArray[np.intp] | slice) -> npt.NDArray[np.bool_]:
        """Bool for each of `rows`: whether enough devices have room."""
        if not len(self.free):
            return np.zeros(self.free[:0, rows].shape[1] if self.free.ndim > 1 else 0, np.bool_)
        fitting: npt.NDArray[np.bool_] = (self.free[:, rows] >= demand.milli).sum(axis=0) >= demand.count
        return fitting

    def choose(self, row: int, demand: pods.GpuDemand) -> tuple[int, ...]:
        """The devices the pod gets on the row: the tightest that fit, the lowest index among equals."""
        free = self.free[:, row]
        fitting = sorted((int(free[device]), device) for device in np.flatnonzero(free >= demand.milli).tolist())
        return tuple(sorted(device for _, device in fitting[: demand.count]))

    def overlay(self) -> Devices:
        """A copy that can be changed without touching this one."""
        twin = Devices()
        twin.free = self.free.copy()
        twin.numbers = self.numbers
        return twin

    def _reshape(self, devices: int, capacity: int) -> None:
        grown = np.full((devices, capacity), -1, np.int32)
        grown[: self.free.shape[0], : self.free.shape[1]] = self.free
        self.free = grown
