"""Visited vertices the plain way: a dict behind a lock."""

from __future__ import annotations

import threading


class Visited:
    """Which vertices were visited by any of many walkers."""

    def __init__(self) -> None:
        self._seen: dict[int, bool] = {}
        self._lock = threading.Lock()

    def claim(self, vertex: int) -> bool:
        """Mark a vertex; returns whether it was not marked yet."""
        with self._lock:
            if vertex in self._seen:
                return False
            self._seen[vertex] = True
            return True
