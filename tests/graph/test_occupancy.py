"""Ports, images and devices: what on a node is taken piece by piece."""

from __future__ import annotations

import pytest

from graphsched.base.values import nodes, pods
from graphsched.graph import occupancy

ANY = "0.0.0.0"  # noqa: S104  compared, never bound
ALL = slice(None)


def port(ip: str = ANY, number: int = 80, protocol: str = "TCP") -> pods.HostPort:
    """A host port."""
    return pods.HostPort(protocol, ip, number)


@pytest.mark.parametrize(
    ("taken", "wanted", "blocked"),
    [
        (port(), port(), True),
        (port(), port("10.0.0.1"), True),
        (port("10.0.0.1"), port(), True),
        (port("10.0.0.1"), port("10.0.0.1"), True),
        (port("10.0.0.1"), port("10.0.0.2"), False),
        (port("::"), port("10.0.0.1"), False),
        (port(protocol="UDP"), port(), False),
        (port(number=81), port(), False),
    ],
)
def test_ports_collide_by_protocol_number_and_address(
    taken: pods.HostPort, wanted: pods.HostPort, blocked: bool
) -> None:
    """Any address collides with every address; only 0.0.0.0 is any."""
    ports = occupancy.Ports()
    ports.count(3, (taken,), sign=1)

    assert ({3} if blocked else set()) == ports.blocked((wanted,))


def test_a_port_is_free_when_its_last_holder_leaves() -> None:
    """And nothing is kept for it."""
    ports = occupancy.Ports()
    ports.count(0, (port(),), sign=1)
    ports.count(0, (port(), port("10.0.0.1")), sign=1)
    ports.count(0, (port(),), sign=-1)
    assert {0} == ports.blocked((port("10.0.0.2"),))
    assert [(port(), 1), (port("10.0.0.1"), 1)] == ports.held(0)

    ports.count(0, (port(), port("10.0.0.1")), sign=-1)

    assert set() == ports.blocked((port(),))
    assert {} == ports._holders


def test_an_overlay_of_ports_is_its_own() -> None:
    """What is taken or freed on it is not taken or freed underneath."""
    ports = occupancy.Ports()
    ports.count(0, (port(),), sign=1)
    twin = ports.overlay()
    twin.count(0, (port(),), sign=-1)
    twin.count(1, (port(),), sign=1)

    assert ({0}, {1}) == (ports.blocked((port(),)), twin.blocked((port(),)))


def image(size: int, *names: str) -> tuple[nodes.Image, ...]:
    """The images of a node that holds one."""
    return (nodes.Image(names, size),)


def test_an_image_is_known_by_each_of_its_names() -> None:
    """With the rows that hold it."""
    images = occupancy.Images()
    for row in (0, 1):
        images.arrive(row)
    images.set(0, (), image(7, "app:1", "app@sha256:1"))
    images.set(1, (), image(7, "app:1"))

    holders, size = images.holders("app:1")
    assert ([0, 1], 7) == (sorted(holders.tolist()), size)
    holders, size = images.holders("app@sha256:1")
    assert ([0], 7) == (holders.tolist(), size)
    assert 0 == len(images.holders("unknown:1")[0])


def test_a_changed_image_list_moves_the_version() -> None:
    """Setting what is there already does not: scores need not be computed anew."""
    images = occupancy.Images()
    images.arrive(0)
    images.set(0, (), image(7, "app:1"))
    seen = images.version
    images.set(0, image(7, "app:1"), image(7, "app:1"))
    assert seen == images.version
    images.set(0, image(7, "app:1"), image(7, "app:2"))

    assert seen < images.version
    assert 0 == len(images.holders("app:1")[0])


def test_a_row_given_to_another_node_makes_that_node_the_latest() -> None:
    """Sizes go by who came first, not by row."""
    images = occupancy.Images()
    for row in (0, 1):
        images.arrive(row)
        images.set(row, (), image(10 + row, "app:1"))
    assert 10 == images.holders("app:1")[1]
    images.set(0, image(10, "app:1"), ())
    images.arrive(0)
    images.set(0, (), image(30, "app:1"))

    assert 11 == images.holders("app:1")[1]


def devices(*per_row: int) -> occupancy.Devices:
    """Rows with this many devices each."""
    made = occupancy.Devices()
    made.resize(len(per_row))
    for row, number in enumerate(per_row):
        made.set(row, number)
    return made


def fits(made: occupancy.Devices, count: int, milli: int) -> list[bool]:
    """Whether each row has room."""
    found: list[bool] = made.fit(pods.GpuDemand(count, milli), ALL).tolist()
    return found


def test_a_fraction_never_straddles_two_devices() -> None:
    """Two halves that are free on different devices are no whole one."""
    made = devices(2)
    made.count(0, (0,), 500, sign=1)
    made.count(0, (1,), 500, sign=1)

    assert [True] == fits(made, 1, 500)
    assert [True] == fits(made, 2, 500)
    assert [False] == fits(made, 1, 501)
    assert [False] == fits(made, 1, 1000)


def test_a_pod_takes_several_whole_devices() -> None:
    """As many as it asks for, each wholly free."""
    made = devices(3, 2, 0)
    made.count(0, (1,), 1, sign=1)

    assert [True, True, False] == fits(made, 2, 1000)
    assert [False, False, False] == fits(made, 3, 1000)
    assert (0, 2) == made.choose(0, pods.GpuDemand(2, 1000))


def test_the_tightest_device_is_chosen_and_the_first_among_equals() -> None:
    """So that whole devices stay whole."""
    made = devices(4)
    made.count(0, (1,), 300, sign=1)
    made.count(0, (2,), 600, sign=1)
    made.count(0, (3,), 600, sign=1)

    assert (2,) == made.choose(0, pods.GpuDemand(1, 400))
    assert (1,) == made.choose(0, pods.GpuDemand(1, 401))
    assert (0,) == made.choose(0, pods.GpuDemand(1, 701))


def test_a_device_given_away_twice_is_paid_back_in_full() -> None:
    """Two pods that others bound may hold more than there is; when one leaves, the other still counts."""
    made = devices(1)
    made.count(0, (0,), 700, sign=1)
    made.count(0, (0,), 700, sign=1)
    assert [False] == fits(made, 1, 1)
    made.count(0, (0,), 700, sign=-1)

    assert [300] == made.free[:, 0].tolist()


def test_a_device_that_is_not_there_is_passed_over() -> None:
    """The node may have lost it."""
    made = devices(1, 2)
    made.count(0, (1,), 700, sign=1)
    made.count(0, (9,), 700, sign=1)

    assert [1000, -1] == made.free[:, 0].tolist()


def test_an_overlay_of_devices_is_its_own() -> None:
    """What is taken on it is not taken underneath."""
    made = devices(1)
    twin = made.overlay()
    twin.count(0, (0,), 1000, sign=1)

    assert ([1000], [0]) == (made.free[:, 0].tolist(), twin.free[:, 0].tolist())


def test_without_any_devices_nothing_fits() -> None:
    """One answer a row all the same."""
    assert [False, False] == fits(devices(0, 0), 1, 1)
