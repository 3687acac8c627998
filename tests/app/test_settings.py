"""Settings come from a file, flags win, and every mistake is one line that says how to mend it."""

import pathlib

import pytest

from graphsched.app import setting_files, settings
from graphsched.base.values import errors
from graphsched.decision import profile


def write(tmp_path: pathlib.Path, text: str) -> str:
    """A configuration file; its path."""
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def complaint(tmp_path: pathlib.Path, text: str) -> str:
    """The line a user reads about this file, without the file's name."""
    path = write(tmp_path, text)
    with pytest.raises(errors.InputError) as caught:
        settings.load(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line.removeprefix(f"{path}: ")


def test_without_a_file_the_defaults_hold() -> None:
    """They are those of kube-scheduler where both have them."""
    loaded = settings.load()

    assert ("graph-scheduler", "127.0.0.1", 10_260) == (loaded.scheduler_name, loaded.http.host, loaded.http.port)
    assert (1.0, 10.0) == (loaded.backoff.initial_s, loaded.backoff.max_s)
    assert profile.Profile() == loaded.decider


def test_the_lease_is_named_after_the_scheduler() -> None:
    """Two schedulers of one cluster do not share one, and a name that no lease may have is made to fit."""
    for scheduler, lease in (("graph-scheduler", "graph-scheduler"), ("team.io/My_Own.v2", "team.io.my-own.v2")):
        loaded = settings.load(flags={"--scheduler-name": scheduler})
        assert lease == loaded.leader_election.lease_of(loaded.scheduler_name)


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}\n"])
def test_an_empty_file_changes_nothing(tmp_path: pathlib.Path, text: str) -> None:
    """A ConfigMap may be empty."""
    assert settings.Settings() == settings.load(write(tmp_path, text))


def test_a_file_sets_what_it_names(tmp_path: pathlib.Path) -> None:
    """In the spelling of Kubernetes; what it leaves out keeps its default."""
    loaded = settings.load(
        write(
            tmp_path,
            """
            schedulerName: other
            http: {host: 0.0.0.0, port: 8080, auth: delegated, tls: {selfSigned: true}}
            queue: {maxBackoffSeconds: 0}
            profile:
              weights: {NodeAffinity: 7, ImageLocality: 0}
              disabledFilters: [NodePorts]
              allocation: {cpu: 2}
              ignoredResourceGroups: [example.com]
            """,
        )
    )

    assert ("other", "0.0.0.0", 8080, 0.0) == (  # noqa: S104  a value, nothing listens
        loaded.scheduler_name,
        loaded.http.host,
        loaded.http.port,
        loaded.backoff.max_s,
    )
    assert (7, 0, 3) == tuple(
        loaded.decider.weights[plugin] for plugin in ("NodeAffinity", "ImageLocality", "TaintToleration")
    )
    assert (("cpu", 2),) == loaded.decider.allocation
    assert (frozenset({"NodePorts"}), frozenset({"example.com"})) == (
        loaded.decider.disabled,
        loaded.decider.ignored_groups,
    )
    assert 32 == loaded.binding.concurrency


def test_flags_win_over_the_file(tmp_path: pathlib.Path) -> None:
    """One that was not given leaves the file's word."""
    path = write(tmp_path, "http: {port: 1}\nlog: {level: debug}\n")
    loaded = settings.load(path, flags={"--port": 2, "--log-format": "json", "--log-level": None, "--context": None})

    assert (2, "json", "debug") == (loaded.http.port, loaded.log.format, loaded.log.level)


def test_every_flag_names_a_setting() -> None:
    """The table of flags can not point beside the settings."""
    given: dict[str, object] = {
        "--host": "127.0.0.2",
        "--port": 1,
        "--mode": "exclusive",
        "--leader-elect": False,
        "--log-format": "json",
        "--log-level": "error",
    }
    for flag in settings.FLAGS:
        assert settings.Settings() != settings.load(flags={flag: given.get(flag, "other")})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("http: {prot: 1}", 'http: unknown setting "prot" (did you mean "port"?)'),
        ("bindings: {}", 'unknown setting "bindings" (did you mean "binding"?)'),
        ("log: {xyzzy: 1}", 'log: unknown setting "xyzzy" (known: format, level)'),
        ("http: {port: abc}", "http.port: is a text (it must be a whole number)"),
        ("http: {port: null}", "http.port: is nothing (it must be a whole number)"),
        ("http: {port: 70000}", "http.port: is out of range (it must be at most 65535)"),
        ("http: 5", "http: is a whole number (it must be a mapping)"),
        ("events: {burst: 1.5}", "events.burst: is a number (it must be a whole number)"),
        (
            "queue: {initialBackoffSeconds: 0}",
            "queue.initialBackoffSeconds: is out of range (it must be more than 0.0)",
        ),
        (
            "queue: {maxBackoffSeconds: 0.5}",
            "queue.maxBackoffSeconds: 0.5 is less than initialBackoffSeconds (at least 1, or 0 for no backoff)",
        ),
        ("log: {level: loud}", 'log.level: "loud" is not known (use one of: debug, info, warning, error)'),
        ("log: {format: xml}", 'log.format: "xml" is not known (use one of: text, json)'),
        (
            "profile: {weights: {NodeAfinity: 3}}",
            'profile.weights: unknown plugin "NodeAfinity" (did you mean "NodeAffinity"?)',
        ),
        (
            "profile: {weights: {NodeAffinity: 2, TaintToleration: -3}}",
            "profile.weights.TaintToleration: is out of range (it must be at least 0)",
        ),
        (
            "profile: {disabledFilters: [NodePort]}",
            'profile.disabledFilters: unknown plugin "NodePort" (did you mean "NodePorts"?)',
        ),
        ("mode: greedy", 'mode: "greedy" is not known (use one of: shared, exclusive, advise, shadow)'),
        ("linkHealth: {sickBelow: 1.1}", "linkHealth.sickBelow: is out of range (it must be at most 1.0)"),
        ("linkHealth: {sickBelow: .nan}", "linkHealth.sickBelow: is out of range (it must be at least 0.0)"),
        ("shared: {headroomPercent: 51}", "shared.headroomPercent: is out of range (it must be at most 50)"),
        (
            "exclusive: {nodeLabel: a/b/c}",
            'exclusive.nodeLabel: "a/b/c" is not the key of a label (e.g. graphsched.io/pool)',
        ),
        ("exclusive: {value: ''}", 'exclusive.value: "" is not the value of a label (e.g. graph-scheduler)'),
        ("profile: {balance: []}", "profile.balance: is empty (name a resource, e.g. cpu)"),
        ("profile: {balance: cpu}", "profile.balance: is a text (it must be a list)"),
        ("http: {tls: {certFile: a}}", "http.tls: certFile and keyFile go together (name both, or neither)"),
        ("http: {tls: {keyFile: a}}", "http.tls: certFile and keyFile go together (name both, or neither)"),
        (
            "http: {tls: {certFile: a, keyFile: b, selfSigned: true}}",
            "http.tls: selfSigned and certFile exclude each other (leave one of them out)",
        ),
        ("http: {auth: none}", 'http.auth: "none" is not known (use one of: loopback, delegated)'),
        ("http: {debugOpen: true}", 'http: unknown setting "debugOpen" (known: host, port, auth, tls)'),
        ("schedulerName: a b", 'schedulerName: "a b" is not a name (e.g. graph-scheduler)'),
        (
            "schedulerName: default-scheduler",
            'schedulerName: "default-scheduler" is the cluster\'s own scheduler (choose another name)',
        ),
        (
            "leaderElection: {leaseSeconds: 10}",
            "leaderElection.leaseSeconds: 10 is not more than renewSeconds (more than 10)",
        ),
        (
            "leaderElection: {retrySeconds: 9}",
            "leaderElection.renewSeconds: 10 is not more than 1.2 times retrySeconds (more than 10.8)",
        ),
        (
            "leaderElection: {leaseName: A b}",
            (
                'leaderElection.leaseName: "A b" is not the name of a lease '
                "(lower case letters, digits, dashes and dots, e.g. graph-scheduler)"
            ),
        ),
        (
            "leaderElection: {namespace: ../x}",
            'leaderElection.namespace: "../x" is not the name of a namespace (e.g. kube-system)',
        ),
        (
            'leaderElection: {identity: "a b"}',
            (
                "leaderElection.identity: is not a name "
                "(at most 128 letters, digits and signs without spaces, different for each replica)"
            ),
        ),
        ("shadow: {schedulerName: ''}", 'shadow.schedulerName: "" is not a name (e.g. default-scheduler)'),
        ("1: 2", "a name in it is no text (quote it)"),
        ("null: 2", "a name in it is no text (quote it)"),
        (
            "profile: {weights: {1: 1}}",
            "profile.weights: a name in it is no text (quote it)",
        ),
        ('profile: {allocation: {"": 1}}', "profile.allocation: has an empty name (e.g. cpu)"),
        ('profile: {balance: [cpu, ""]}', "profile.balance: has an empty name (e.g. cpu)"),
        ("[1, 2]", "not a mapping (write settings as `name: value`)"),
        ("a: 1\n---\nb: 2", "line 2, column 1: not valid YAML: a second document begins (see docs/configuration.md)"),
        ("a: 'b", "line 1, column 6: not valid YAML: found unexpected end of stream (see docs/configuration.md)"),
        (
            "a: b: c",
            "line 1, column 5: not valid YAML: mapping values are not allowed here (see docs/configuration.md)",
        ),
    ],
)
def test_a_mistake_in_the_file_is_told(tmp_path: pathlib.Path, text: str, line: str) -> None:
    """File, field, problem and remedy."""
    assert line == complaint(tmp_path, text)


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"--port": "x"}, "--port: is a text (it must be a whole number)"),
        ({"--log-level": "loud"}, '--log-level: "loud" is not known (use one of: debug, info, warning, error)'),
    ],
)
def test_a_mistake_in_a_flag_is_told(flags: dict[str, object], line: str) -> None:
    """The flag is the place."""
    with pytest.raises(errors.InputError) as caught:
        settings.load(flags=flags)

    assert line == str(caught.value)


@pytest.mark.parametrize("host", ["10.0.0.7", "0.0.0.0", "::", "", "somewhere.example"])  # noqa: S104  values
def test_what_others_reach_needs_a_guard(tmp_path: pathlib.Path, host: str) -> None:
    """TLS alone keeps nobody out; the remedy is named."""
    said = complaint(tmp_path, f"http: {{host: '{host}', tls: {{selfSigned: true}}}}")

    assert said.startswith(f'http.host: "{host}" is reached by other hosts')
    assert said.endswith("(set http.auth: delegated with http.tls, or http.host: 127.0.0.1)")


def test_tokens_are_not_sent_in_the_clear(tmp_path: pathlib.Path) -> None:
    """Delegated authentication without TLS is refused."""
    said = complaint(tmp_path, "http: {auth: delegated}")

    assert said.startswith("http.auth: delegated needs TLS, or tokens would be sent in the clear (set http.tls.")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_what_only_this_host_reaches_needs_no_guard(host: str) -> None:
    """The default, and its other spellings."""
    assert host == settings.load(flags={"--host": host}).http.host


@pytest.mark.parametrize("host", ["ä.example", "a b", "127.0.0.1:99", "[::1]", ".", "a..b", "a" * 64, "*"])
def test_what_is_no_host_is_told(tmp_path: pathlib.Path, host: str) -> None:
    """Neither the system's look-up nor the certificate would know what to do with it."""
    said = complaint(tmp_path, f"http: {{host: '{host}', auth: delegated, tls: {{selfSigned: true}}}}")

    assert f'http.host: "{host}" is no address and no name of a host (e.g. 127.0.0.1)' == said


@pytest.mark.parametrize("host", ["", "fe80::1%eth0", "Node_1.example.", "a" * 63])
def test_a_host_may_be_a_name_or_an_address(tmp_path: pathlib.Path, host: str) -> None:
    """Empty for all addresses, as before."""
    path = write(tmp_path, f"http: {{host: '{host}', auth: delegated, tls: {{selfSigned: true}}}}")

    assert host == settings.load(path).http.host


@pytest.mark.parametrize(
    "text",
    [
        "http: 2020-99-99",
        '!!int "x": 1',
        'a: !!int ""',
        'a: !!bool "x"',
        'a: !!timestamp "x"',
        f"a: {'9' * 5000}",
        "[" * 2000,
        "a: \0",
    ],
    ids=["date", "name", "int", "bool", "timestamp", "digits", "depth", "zero"],
)
def test_a_value_that_yaml_can_not_make_is_a_mistake_of_the_file(tmp_path: pathlib.Path, text: str) -> None:
    """The library says it with errors of many kinds; none of them is a bug of ours."""
    said = complaint(tmp_path, text)

    assert "not valid YAML: " in said
    assert said.endswith(" (see docs/configuration.md)")
    assert len(said) < 300


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mode: shared\nmode: advise", 'line 2, column 1: not valid YAML: "mode" is given twice'),
        ("http: {port: 1, port: 2}", 'line 1, column 17: not valid YAML: "port" is given twice'),
    ],
)
def test_nothing_is_dropped_that_is_given_twice(tmp_path: pathlib.Path, text: str, line: str) -> None:
    """One of the two would not be in effect, and nobody would know which."""
    assert f"{line} (see docs/configuration.md)" == complaint(tmp_path, text)


def test_what_is_merged_may_be_given_again(tmp_path: pathlib.Path) -> None:
    """That is what merging is for, wherever the merged part is itself merged from another."""
    text = "queue: &q {<<: &e {maxBackoffSeconds: 7}, maxBackoffSeconds: 8}\nmode: advise\n"
    loaded = settings.load(write(tmp_path, text))

    assert (8.0, "advise") == (loaded.queue.max_backoff_seconds, loaded.mode)


@pytest.mark.parametrize("bad", ["\\0", "\\n", "\\ud800", "\\e[31m"], ids=["zero", "line", "half", "colour"])
@pytest.mark.parametrize("field", ["schedulerName", "audit.dumpDirectory", "http.tls.certFile", "exclusive.value"])
def test_a_text_is_one_line_of_what_is_printed(tmp_path: pathlib.Path, field: str, bad: str) -> None:
    """What no path can hold fails at the start, and nothing breaks a line of the log."""
    *groups, last = field.split(".")
    text = "".join(f"{{{group}: " for group in groups) + f'{{{last}: "a{bad}b"}}' + "}" * len(groups)
    line = "holds a character that is not printed (write it as plain text on one line)"

    assert f"{field}: {line}" == complaint(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "queue: {initialBackoffSeconds: .inf}",
        "queue: {maxBackoffSeconds: .inf}",
        "audit: {everySeconds: .inf}",
        "events: {perSecond: .inf}",
        "decisions: {kept: 99999999999999999999999999}",
        "leaderElection: {leaseSeconds: 99999999999}",
    ],
)
def test_no_number_is_without_bounds(tmp_path: pathlib.Path, text: str) -> None:
    """One that is infinite or a slip of the hand would fail in a sum hours later."""
    assert "is out of range (it must be at most " in complaint(tmp_path, text)


def test_a_wrong_value_is_quoted_in_part(tmp_path: pathlib.Path) -> None:
    """A page of it helps nobody."""
    assert len(complaint(tmp_path, f"mode: {'x' * 5000}")) < 300


def test_what_is_no_configuration_file_is_told(tmp_path: pathlib.Path) -> None:
    """A missing file, a folder, bytes, and a file of another kind of size."""
    binary, huge = tmp_path / "binary", tmp_path / "huge"
    binary.write_bytes(b"a: \x80")
    huge.write_bytes(b"#" * (setting_files.FILE_BYTES_MAX + 1))
    for path, problem in (
        (tmp_path / "absent", "no such file or directory (--config names a YAML file)"),
        (tmp_path, "is a directory (--config names a YAML file)"),
        (huge, "larger than 1 MiB (--config names a configuration file)"),
    ):
        with pytest.raises(errors.InputError) as caught:
            settings.load(str(path))
        assert f"{path}: {problem}" == str(caught.value)
    with pytest.raises(errors.InputError, match="not valid YAML"):
        settings.load(str(binary))
