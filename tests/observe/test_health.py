"""Health checks: what the probes of a kubelet and a person read."""

import gc
import weakref

from graphsched.observe import health


def checks(*, watch: str = "", loop: str = "") -> health.Health:
    """Health with a loop check that is about life and a watch check that is about readiness."""
    return health.Health([health.Check("loop", lambda: loop, live=True), health.Check("watch/pods", lambda: watch)])


def test_all_well_is_one_word() -> None:
    """A kubelet needs no more."""
    assert "ok" == checks().report("readyz").text()


def test_a_person_may_see_the_list() -> None:
    """`?verbose` names every check."""
    expected = "[+]loop ok\n[+]watch/pods ok\nreadyz check passed\n"

    assert expected == checks().report("readyz").text(verbose=True)


def test_a_check_that_passed_may_say_more() -> None:
    """Of two replicas that are both well, which one leads."""
    told = health.Health([health.Check("leader-election", lambda: "", note=lambda: "standby of b")])

    assert "[+]leader-election ok: standby of b\nreadyz check passed\n" == told.report("readyz").text(verbose=True)


def test_a_failure_says_what_is_wrong_unasked() -> None:
    """Who is paged at night does not know of `?verbose`."""
    report = checks(watch="no list yet").report("readyz")

    assert not report.ok
    assert "[+]loop ok\n[-]watch/pods failed: no list yet\nreadyz check failed\n" == report.text()


def test_only_a_check_about_life_gets_the_process_killed() -> None:
    """A watch that can not reach the API server is no reason to restart."""
    assert checks(watch="no answer").report("livez").ok
    assert not checks(loop="stuck for 60 s").report("livez").ok


def test_a_check_can_be_left_out() -> None:
    """`?exclude=` as kube components know it."""
    assert checks(watch="no list yet").report("readyz", exclude=["watch/pods"]).ok


def test_a_check_may_tell_more_where_all_is_well() -> None:
    """Whoever asks for the list sees it; a probe and a failure do without."""
    probe = ["", "broken"]
    asked = health.Health([health.Check("audit", lambda: probe[0], note=lambda: "12 s ago, clean")])

    assert "ok" == asked.report("readyz").text()
    assert "[+]audit ok: 12 s ago, clean\nreadyz check passed\n" == asked.report("readyz").text(verbose=True)
    del probe[0]
    assert "[-]audit failed: broken\nreadyz check failed\n" == asked.report("readyz").text()


class Asked:
    """Is asked, and knows who asks."""

    def __init__(self) -> None:
        self.health = health.Health([health.Check("loop", self.probe)])

    def probe(self) -> str:
        """All is well."""
        return ""


def test_who_is_asked_is_let_go_with_the_program() -> None:
    """A simulation lives through a thousand programs in one process."""
    gone = weakref.ref(Asked())
    gc.collect()

    assert gone() is None
