"""Resource versions, compared.

The API server counts them up with every change to any object, and says so: versions of one resource may be compared as
numbers (they are etcd's revisions). What does not look like a number is compared with nothing.
"""

from __future__ import annotations


def earlier(one: str, other: str) -> bool:
    """Whether version `one` came before `other` in the same history; False when that can not be told."""
    return _is_number(one) and _is_number(other) and int(one) < int(other)


def _is_number(version: str) -> bool:
    # A uint64 has 20 digits at most; more would be work for nothing.
    return version.isascii() and version.isdigit() and len(version) <= 20
