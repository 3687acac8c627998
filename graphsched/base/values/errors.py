"""Every exception this project raises on purpose.

    GraphschedError
     ├── InputError          a user's mistake: file, flag, manifest, setting    → exit code 2, one line
     │    └── QuantityError  a text that is no Kubernetes quantity
     ├── StaleViewError      a view was read after the graph had moved on       → our bug
     └── ClusterError        the API server refused, failed or went away
          ├── NotFoundError      404: the object is gone
          ├── ConflictError      409: bound already, being deleted, or still gated
          ├── ForbiddenError     401 or 403: a right is missing, or the credentials are not valid
          ├── FencedError        not sent, since this replica does not hold the lease
          ├── ExpiredError       410: the version asked for is no longer held; list again
          └── UnreachableError   no answer, so whether the call took effect is unknown

A refusal to place a pod is no error: see `status.Status`.
"""

from __future__ import annotations

_NOT_FOUND = 404


class GraphschedError(Exception):
    """Root of the tree above."""


class InputError(GraphschedError):
    """A user's mistake, told in one line: where it is, what is wrong, how to mend it.

    Attributes:
        place: File, object and field, outermost first, e.g. `("cluster.yaml", 'Node "n1"', "status.allocatable.cpu")`.
        problem: What is wrong, e.g. `"12Gx" is not a quantity`.
        remedy: What to do, e.g. `use e.g. 12, 500m`; may be empty when the problem says it.
    """

    def __init__(self, *place: str, problem: str, remedy: str = "") -> None:
        self.place = tuple(part for part in place if part)
        self.problem = problem
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        """The one line a user reads, without the program's name."""
        where = "".join(f"{part}: " for part in self.place)
        return f"{where}{self.problem}" + (f" ({self.remedy})" if self.remedy else "")

    def within(self, *outer: str) -> InputError:
        """The same mistake, seen from further out: `outer` is put before the place."""
        return InputError(*outer, *self.place, problem=self.problem, remedy=self.remedy)


class QuantityError(InputError):
    """A text that is no Kubernetes quantity, or one that overflows 64 bits."""


class StaleViewError(GraphschedError):
    """A view was read after the store had applied another patch: a bug in the caller."""


class ClusterError(GraphschedError):
    """The API server refused, failed or went away.

    Attributes:
        status: HTTP status, 0 when there was no answer.
        reason: The machine-readable reason of the answer, e.g. `AlreadyExists`.
        retry_after_s: What the server asked for, 0.0 when it did not.
    """

    def __init__(self, message: str, *, status: int = 0, reason: str = "", retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    @property
    def absent(self) -> bool:
        """Whether nothing is at the path, be it said of an object, in plain text of a kind that is not installed, or
        by a webhook on the way: to know which, look for NotFoundError.
        """
        return self.status == _NOT_FOUND


class NotFoundError(ClusterError):
    """404: the object is gone."""


class ConflictError(ClusterError):
    """409: the object is bound already, being deleted, still gated, or another one than was meant."""


class ForbiddenError(ClusterError):
    """401 or 403: the credentials are not valid, or a right is missing."""


class FencedError(ClusterError):
    """The call was not sent: this replica does not hold the lease that allows it to write."""


class ExpiredError(ClusterError):
    """410: the resource version asked for is no longer held, so list again."""


class UnreachableError(ClusterError):
    """No answer: whether the call took effect is unknown, so read before trying again."""
