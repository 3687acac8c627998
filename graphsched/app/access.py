"""Delegated authentication and authorization, as Kubernetes components do it: the API server says who may see what.

Comes in: a bearer token and a path. Goes out: a verdict, from a TokenReview (whose token is it) and a
SubjectAccessReview (may they GET this path). Answers are remembered for ten seconds, which is what kube-scheduler does:
a token that was revoked and a right that was taken away are noticed after that.

Invariants: a token is never kept, only a keyed hash of it, and never written anywhere; so many questions are on their
way at most, and so many wait, whatever callers send; failures are not remembered.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import typing
from collections import OrderedDict

from graphsched.base.kit import clock as clocks
from graphsched.base.kube import client as clients, reviews
from graphsched.base.values import errors
from graphsched.observe import access

_log = logging.getLogger(__name__)

REMEMBERED_S = 10.0
"""For yes and no alike: the defaults of kube-scheduler's delegated authentication and authorization."""
REMEMBERED_MAX = 1024
"""Answers of either kind, of some 300 bytes each. A flood of tokens makes the oldest be forgotten."""
REVIEWS_MAX = 4
"""Questions on their way at a time: the client keeps connections for so many beside what scheduling needs."""
WAITING_MAX = 12
"""Requests that wait for one of these."""
REVIEW_S = 5.0
"""For one question."""
CHECK_S = 10.0
"""For both, waiting included; a scrape times out after as long by default."""

_NOBODY = access.Verdict(
    access.UNAUTHENTICATED, "a bearer token is needed: kubectl create token SERVICEACCOUNT makes one"
)
_UNKNOWN = access.Verdict(access.UNAUTHENTICATED, "the API server does not accept this token")
_BUSY = access.Verdict(access.UNAVAILABLE, "too many tokens are being checked, try again")
_ALLOWED = access.Verdict(access.ALLOWED)

Known = typing.TypeVar("Known")


class _Memory(typing.Generic[Known]):
    """Key → what was found out, for a while; the oldest goes first when there is too much."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._clock = clock
        self._entries: OrderedDict[bytes, tuple[float, Known]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> tuple[Known] | None:
        """What is remembered, in a tuple since it may be None; None for nothing."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if self._clock.monotonic() >= entry[0]:
            del self._entries[key]
            return None
        return (entry[1],)

    def put(self, key: bytes, known: Known) -> None:
        """Remember it from now on."""
        self._entries.pop(key, None)
        while len(self._entries) >= REMEMBERED_MAX:
            self._entries.popitem(last=False)
        self._entries[key] = self._clock.monotonic() + REMEMBERED_S, known


class Delegated:
    """Asks the API server about each request; a `Guard`."""

    def __init__(self, api: clients.Client, *, clock: clocks.Clock) -> None:
        self._api = api
        self._users: _Memory[reviews.User | None] = _Memory(clock)
        self._rights: _Memory[bool] = _Memory(clock)
        self._places = asyncio.Semaphore(REVIEWS_MAX)
        self._asking = 0
        # Whoever reads this memory can not try tokens against it without the key, which lives as long as the process.
        self._key = secrets.token_bytes(32)

    async def __call__(self, token: str, path: str) -> access.Verdict:
        """Whether to answer a request for `path` that came with `token` (empty for none)."""
        if not token:
            return _NOBODY
        found = self._remembered(token, path)
        if found is not None:
            return found
        if self._asking >= REVIEWS_MAX + WAITING_MAX:
            return _BUSY
        self._asking += 1
        try:
            async with asyncio.timeout(CHECK_S), self._places:
                # Somebody with the same token may have asked meanwhile.
                return self._remembered(token, path) or await self._ask(token, path)
        except TimeoutError:
            _log.warning("a token was not checked within %.0f s: the API server is slow, or many are sent", CHECK_S)
            return access.Verdict(
                access.UNAVAILABLE, "the API server did not say in time whose token this is, try again"
            )
        finally:
            self._asking -= 1

    def _remembered(self, token: str, path: str) -> access.Verdict | None:
        """The verdict as far as memory goes; None when something has to be asked."""
        known = self._users.get(self._hash(token))
        if known is None:
            return None
        (user,) = known
        if user is None:
            return _UNKNOWN
        right = self._rights.get(self._hash(token, path))
        return None if right is None else _verdict(user, path, allowed=right[0])

    async def _ask(self, token: str, path: str) -> access.Verdict:
        what = "whose token this is"
        try:
            known = self._users.get(self._hash(token))
            if known is None:
                known = (await reviews.user(self._api, token, deadline_s=REVIEW_S),)
                self._users.put(self._hash(token), known[0])
            (user,) = known
            if user is None:
                return _UNKNOWN
            what = f"whether {user.username} may get {path}"
            allowed = await reviews.may_get(self._api, user, path, deadline_s=REVIEW_S)
        except errors.GraphschedError as error:
            right = isinstance(error, errors.ForbiddenError)
            remedy = " (bind the ClusterRole system:auth-delegator to graphsched's service account)" if right else ""
            _log.warning("the API server did not say %s%s: %s", what, remedy, error)
            return access.Verdict(
                access.UNAVAILABLE, f"the API server can not be asked {what}{remedy or ', try again'}"
            )
        self._rights.put(self._hash(token, path), allowed)
        return _verdict(user, path, allowed=allowed)

    def _hash(self, token: str, path: str = "") -> bytes:
        # A token has no space in it, so that the two can not be mistaken for another two.
        return hashlib.blake2b(f"{token} {path}".encode(), key=self._key, digest_size=32).digest()


def _verdict(user: reviews.User, path: str, *, allowed: bool) -> access.Verdict:
    if allowed:
        return _ALLOWED
    return access.Verdict(
        access.FORBIDDEN,
        f"{user.username} may not get {path}: a ClusterRole with nonResourceURLs and the verb get would allow it",
    )
