"""
Who holds which token and who may get what, as the fake API server answers TokenReviews and SubjectAccessReviews.

Comes in: users by token, and (user, path) pairs. Goes out: the answers that the real API server gives, with a User in
the whole form it has for a service account's token.
"""

import dataclasses

from tests.fakes import storage

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclasses.dataclass
class Reviews:
    """The script."""

    #: Token → username.
    users: dict[str, str] = dataclasses.field(default_factory=dict)
    #: (username, path) that may be read.
    rights: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def answer(self, path: str, body: storage.Object) -> storage.Object | None:
        """The reviewed object; None when the path is none of a review."""
        spec = body["spec"] if path in {TOKENS, ACCESS} else {}
        if path == TOKENS:
            name = self.users.get(spec["token"])
            status: storage.Object = {"user": {}, "error": "invalid bearer token"}
            if name is not None:
                user = {"username": name, "uid": "u1", "groups": ["system:authenticated"], "extra": {"node": ["n1"]}}
                status = {"authenticated": True, "user": user, "audiences": ["https://kubernetes.default.svc"]}
        elif path == ACCESS:
            asked = spec["nonResourceAttributes"]
            assert "get" == asked["verb"]
            status = {"allowed": (spec["user"], asked["path"]) in self.rights, "reason": ""}
        else:
            return None
        return {**body, "metadata": {}, "status": status}
