"""What the election of a leader relies on an API server to do with a Lease, and the fake to do alike."""

import msgspec
import pytest

from graphsched.base.kube import client as clients, leases
from graphsched.base.values import errors
from tests.contract import targets

NAMESPACE, NAME = "default", "graph-scheduler"
PATH = f"/apis/{leases.API}/namespaces/{NAMESPACE}/leases/{NAME}"
FIRST = leases.Spec("one", 15, leases.moment(1_800_000_000.0), leases.moment(1_800_000_000.25), 0)
RENEWED = msgspec.structs.replace(FIRST, renew_time=leases.moment(1_800_000_002.000001))
TAKEN = leases.Spec("two", 4, leases.moment(1_800_000_020.5), leases.moment(1_800_000_020.5), 1)
RELEASED = leases.Spec("", 1, leases.moment(1_800_000_030.0), leases.moment(1_800_000_030.0), 1)
S = 10.0


def registry(client: clients.Client) -> leases.APIRegistry:
    """The lease of the tests."""
    return leases.APIRegistry(client, namespace=NAMESPACE, name=NAME)


def test_a_lease_reads_as_it_was_written(target: targets.Target) -> None:
    """To the last digit: what we wrote is told from what others wrote by nothing else."""

    async def body(client: clients.Client) -> None:
        lease = registry(client)
        with pytest.raises(errors.NotFoundError):
            await lease.get(deadline_s=S)
        made = await lease.create(FIRST, deadline_s=S)
        renewed = await lease.update(made, RENEWED, deadline_s=S)
        taken = await lease.update(renewed, TAKEN, deadline_s=S)
        assert [FIRST, RENEWED, TAKEN] == [made.spec, renewed.spec, taken.spec]
        released = await lease.update(taken, RELEASED, deadline_s=S)

        assert (RELEASED, RELEASED) == (released.spec, (await lease.get(deadline_s=S)).spec)

    target.run(body)


def test_of_two_who_saw_the_same_lease_one_gets_it(target: targets.Target) -> None:
    """The other is told of a conflict, and so is who makes one that is there."""

    async def body(client: clients.Client) -> None:
        lease = registry(client)
        seen = await lease.create(FIRST, deadline_s=S)
        with pytest.raises(errors.ConflictError):
            await lease.create(TAKEN, deadline_s=S)
        await lease.update(seen, RENEWED, deadline_s=S)
        with pytest.raises(errors.ConflictError):
            await lease.update(seen, TAKEN, deadline_s=S)

        assert RENEWED == (await lease.get(deadline_s=S)).spec

    target.run(body)


def test_a_lease_that_was_deleted_is_not_brought_back_by_a_renewal(target: targets.Target) -> None:
    """Not even if another was made under its name."""

    async def body(client: clients.Client) -> None:
        lease = registry(client)
        seen = await lease.create(FIRST, deadline_s=S)
        await client.delete(PATH)
        with pytest.raises((errors.ConflictError, errors.NotFoundError)):
            await lease.update(seen, RENEWED, deadline_s=S)
        await lease.create(TAKEN, deadline_s=S)
        with pytest.raises(errors.ConflictError):
            await lease.update(seen, RENEWED, deadline_s=S)

        assert TAKEN == (await lease.get(deadline_s=S)).spec

    target.run(body)


def test_what_others_put_on_a_lease_stays(target: targets.Target) -> None:
    """Labels and annotations survive a write."""

    async def body(client: clients.Client) -> None:
        lease = registry(client)
        await lease.create(FIRST, deadline_s=S)
        marks = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
        await client.patch(PATH, {"metadata": marks}, kind="merge")
        written = await lease.update(await lease.get(deadline_s=S), RENEWED, deadline_s=S)

        assert marks == {name: written.metadata[name] for name in marks}

    target.run(body)
