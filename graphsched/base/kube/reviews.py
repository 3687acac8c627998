"""Asks the API server who somebody is and what they may do: TokenReview and SubjectAccessReview.

A bearer token comes in, a `User` or None goes out; a user and a path come in, yes or no goes out. Nothing is kept here.

Invariant: a token reaches the API server and nothing else: no error raised here carries one.
"""

from __future__ import annotations

import typing

import msgspec

from graphsched.base.kube import client as clients
from graphsched.base.values import errors

_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

Review = typing.TypeVar("Review")


class User(msgspec.Struct, frozen=True):
    """Somebody the API server knows, as it names them.

    Attributes:
        username: E.g. `system:serviceaccount:monitoring:prometheus`.
        uid: Told apart by it over time; may be empty.
        groups: What they belong to.
        extra: What else the API server's authorizers go by.
    """

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


async def user(api: clients.Client, token: str, *, deadline_s: float) -> User | None:
    """Whose token it is; None when the API server does not accept it.

    Raises:
        ClusterError: It could not be asked, or gave no answer that can be read.
    """
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = await api.post(_TOKENS, body, deadline_s=deadline_s)
    status = _decoded(answer, _TokenReview, what="TokenReview").status
    return status.user if status.authenticated and status.user.username else None


async def may_get(api: clients.Client, who: User, path: str, *, deadline_s: float) -> bool:
    """Whether `who` may GET the path, by the non-resource rules of the cluster's roles.

    Raises:
        ClusterError: It could not be asked, or gave no answer that can be read.
    """
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": who.username,
            "uid": who.uid,
            "groups": who.groups,
            "extra": who.extra,
            "nonResourceAttributes": {"path": path, "verb": "get"},
        },
    }
    answer = await api.post(_ACCESS, body, deadline_s=deadline_s)
    status = _decoded(answer, _AccessReview, what="SubjectAccessReview").status
    return status.allowed and not status.denied


def _decoded(answer: bytes, kind: type[Review], *, what: str) -> Review:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError as error:
        raise errors.ClusterError(f"{what}: the answer can not be read: {error}") from error
