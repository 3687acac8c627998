"""
The metrics: names and buckets that kube-scheduler's dashboards rely on, bounded series, the page that documents them.

Nothing is substituted: each test reports to a `Metrics` of its own and reads the text that a scrape would get.
"""

import pytest
from prometheus_client import parser

from graphsched.observe import metrics, series


@pytest.fixture
def meters() -> metrics.Metrics:
    """Metrics nobody has reported to."""
    return metrics.Metrics(profile="graph-scheduler", version="1.2.3")


def scraped(meters: metrics.Metrics) -> dict[str, float]:
    """Every sample of a scrape, as `name{label=value,...}` → value, labels sorted."""
    samples: dict[str, float] = {}
    for family in parser.text_string_to_metric_families(meters.render().decode()):
        for sample in family.samples:
            labels = ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items()))
            samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return samples


def test_what_is_rare_reads_zero_before_it_happens(meters: metrics.Metrics) -> None:
    """A rate over a series that begins with its first event is blind to it, and so is an alert."""
    meters.expect("pods")

    samples = scraped(meters)
    assert {0.0} == {
        samples[name]
        for name in (
            "graphsched_bind_total{outcome=refused}",
            "graphsched_conditions_total{outcome=failed}",
            "graphsched_events_total{outcome=dropped}",
            "graphsched_graph_patches_total{outcome=refused,source=watch/pods}",
            "graphsched_watch_failures_total{resource=pods}",
            "graphsched_watch_invalid_objects_total{resource=pods}",
        )
    }


def test_an_attempt_is_counted_and_timed_under_its_result(meters: metrics.Metrics) -> None:
    """One report moves the counter and the histogram of that result, and of no other."""
    meters.attempt(metrics.Result.SCHEDULED, 0.003)

    samples = scraped(meters)
    labels = "profile=graph-scheduler,result=scheduled"
    assert 1 == samples[f"scheduler_schedule_attempts_total{{{labels}}}"]
    assert 0.003 == samples[f"scheduler_scheduling_attempt_duration_seconds_sum{{{labels}}}"]
    assert 0 == samples["scheduler_schedule_attempts_total{profile=graph-scheduler,result=error}"]


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("scheduler_scheduling_attempt_duration_seconds", 0.001, 16.384),
        ("scheduler_scheduling_algorithm_duration_seconds", 0.001, 16.384),
        ("scheduler_pod_scheduling_sli_duration_seconds", 0.01, 5242.88),
        ("scheduler_pod_scheduling_attempts", 1.0, 16.0),
    ],
)
def test_buckets_are_those_of_kube_scheduler(meters: metrics.Metrics, name: str, first: float, last: float) -> None:
    """A dashboard that sums over both schedulers' buckets gets sums that make sense."""
    meters.attempt(metrics.Result.SCHEDULED, 1.0)
    meters.scheduled(attempts=1, waited_s=1.0)
    bounds = sorted(
        {
            float(sample.labels["le"])
            for family in parser.text_string_to_metric_families(meters.render().decode())
            for sample in family.samples
            if sample.name == f"{name}_bucket" and sample.labels["le"] != "+Inf"
        }
    )

    assert (first, last) == (bounds[0], bounds[-1])


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (400, "15+")])
def test_a_pods_wait_is_labelled_by_its_attempts(meters: metrics.Metrics, attempts: int, label: str) -> None:
    """From the fifteenth attempt on all share one label, so a stuck pod makes no new series."""
    meters.scheduled(attempts=attempts, waited_s=2.0)

    assert 2.0 == scraped(meters)[f"scheduler_pod_scheduling_sli_duration_seconds_sum{{attempts={label}}}"]


def test_a_queue_that_emptied_reads_zero(meters: metrics.Metrics) -> None:
    """A gauge does not keep what was true an hour ago."""
    meters.set_pending({"active": 3, "gated": 1})
    meters.set_pending({"backoff": 2})

    samples = scraped(meters)
    assert [0, 2, 0] == [
        samples[f"scheduler_pending_pods{{queue={queue}}}"] for queue in ("active", "backoff", "gated")
    ]


def test_a_plugin_that_refuses_nothing_any_more_reads_zero(meters: metrics.Metrics) -> None:
    """The last pod it refused was placed, and the series says so."""
    meters.set_unschedulable({"NodeResourcesFit": 2, "TaintToleration": 1})
    meters.set_unschedulable({"NodeResourcesFit": 1})

    samples = scraped(meters)
    assert 1 == samples["scheduler_unschedulable_pods{plugin=NodeResourcesFit,profile=graph-scheduler}"]
    assert 0 == samples["scheduler_unschedulable_pods{plugin=TaintToleration,profile=graph-scheduler}"]


def test_the_number_of_series_is_bounded(meters: metrics.Metrics) -> None:
    """Labels that are not the closed set they should be end in one series called `other`."""
    for number in range(5 * series.SERIES_MAX):
        meters.queue_incoming("active", f"event-{number}")

    lines = [name for name in scraped(meters) if name.startswith("scheduler_queue_incoming_pods_total")]
    assert series.SERIES_MAX + 1 >= len(lines)
    assert 4 * series.SERIES_MAX == scraped(meters)["scheduler_queue_incoming_pods_total{event=other,queue=other}"]


def test_a_followed_total_only_grows(meters: metrics.Metrics) -> None:
    """A total that was started anew adds what it counted since, and never takes anything back."""
    for total in (5, 5, 9, 2):
        meters.class_hits.follow(total)

    assert 11 == scraped(meters)["graphsched_class_cache_hits_total"]


def test_what_is_read_on_request_is_fresh(meters: metrics.Metrics) -> None:
    """Refreshers run before each scrape, not between them."""
    readings = iter([7, 8])
    meters.refresh_with(lambda: meters.set_inbox(next(readings)))

    assert [7, 8] == [scraped(meters)["graphsched_inbox_rows"] for _ in range(2)]


def test_every_report_shows_up_under_its_name(meters: metrics.Metrics) -> None:
    """Each reporting method moves the metric it is for."""
    meters.decision(0.0001)
    meters.patch("watch/pods", "applied", rows=4)
    meters.bind("bound", 0.01)
    meters.conflict("moved")
    meters.rejection("cpu")
    meters.audits.found("stale", 2)
    meters.audits.ended("mended")
    meters.audits.set_age(4.5)
    meters.event("written")
    meters.condition("unchanged")
    meters.watches.watch_event("pods", "ADDED", 3)
    meters.watches.relist("pods", "expired")
    meters.watches.watch_failure("nodes")
    meters.watches.invalid("pods")
    meters.loop_lag(0.002)
    meters.set_cache(nodes=2, pods=3, assumed=1)
    meters.set_graph(generation=9, vertices={"node": 2}, edges={"runs": 1})
    meters.set_classes(4)
    meters.set_inflight(6)
    meters.set_leaks(open_nodes=2, guests=7)
    meters.watches.set_event_age("pods", 1.5)

    samples = scraped(meters)
    expected = {
        "graphsched_decision_duration_seconds_count": 1,
        "graphsched_graph_patches_total{outcome=applied,source=watch/pods}": 1,
        "graphsched_graph_rows_total{source=watch/pods}": 4,
        "graphsched_bind_total{outcome=bound}": 1,
        "graphsched_bind_duration_seconds_count": 1,
        "graphsched_conflicts_total{kind=moved}": 1,
        "graphsched_rejections_total{reason=cpu}": 1,
        "graphsched_audit_differences_total{kind=stale}": 2,
        "graphsched_audits_total{result=mended}": 1,
        "graphsched_audit_age_seconds": 4.5,
        "graphsched_events_total{outcome=written}": 1,
        "graphsched_conditions_total{outcome=unchanged}": 1,
        "graphsched_watch_events_total{resource=pods,type=ADDED}": 3,
        "graphsched_watch_relists_total{reason=expired,resource=pods}": 1,
        "graphsched_watch_failures_total{resource=nodes}": 1,
        "graphsched_watch_invalid_objects_total{resource=pods}": 1,
        "graphsched_loop_lag_seconds_count": 1,
        "scheduler_cache_size{type=assumed_pods}": 1,
        "graphsched_graph_generation": 9,
        "graphsched_graph_vertices{kind=node}": 2,
        "graphsched_graph_edges{kind=runs}": 1,
        "graphsched_class_cache_classes": 4,
        "graphsched_bind_inflight": 6,
        "graphsched_pool_leaks{kind=open_nodes}": 2,
        "graphsched_pool_leaks{kind=guests}": 7,
        "graphsched_watch_last_event_age_seconds{resource=pods}": 1.5,
        "graphsched_build_info{version=1.2.3}": 1,
    }
    assert expected == {name: samples[name] for name in expected}


def test_each_metric_has_a_sentence_of_help(meters: metrics.Metrics) -> None:
    """A stranger reads sentences: they begin with a capital letter and end with a full stop."""
    bad = [
        one.name
        for one in meters.declared
        if not (one.help[0].isupper() and one.help.endswith(".") and " " in one.help)
    ]

    assert [] == bad
