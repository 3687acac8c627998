"""The Dockerfile holds only steps that can be tried here, runs as nobody, and installs nothing unpinned."""

import json
import re

import pytest
import yaml

from scripts import image_steps
from tests.architecture import tidy

TEXT = (tidy.ROOT / "Dockerfile").read_text()
STEPS = image_steps.parse(TEXT)


def texts(name: str) -> list[str]:
    """Return what follows every instruction of that name."""
    return [step.text for step in STEPS if step.name == name]


def test_every_step_can_be_run_on_this_machine() -> None:
    """`make image-steps` runs the Dockerfile itself; no instruction is beyond it."""
    image_steps.refuse_unknown(STEPS)


def test_an_unknown_step_is_refused() -> None:
    """An instruction that could not be tried is an error that names its line."""
    with pytest.raises(image_steps.DockerfileError, match="Dockerfile:2: ADD is not one of"):
        image_steps.refuse_unknown(image_steps.parse("FROM x\nADD a b\n"))


def test_continued_lines_are_one_step() -> None:
    """Comments and empty lines between steps go; a continued line keeps the number it started at."""
    steps = image_steps.parse("# why\n\nRUN a && \\\n    b\nUSER 1\n")

    assert steps == [image_steps.Instruction(3, "RUN", "a && b"), image_steps.Instruction(5, "USER", "1")]


def test_steps_write_only_where_variables_point() -> None:
    """A literal absolute path in a step would be written to on the machine that tries it."""
    assert [] == [text for text in texts("RUN") if re.search(r"(?<![\w}\"$.-])/\w", text)]


def test_two_stages_share_the_base_image_that_an_argument_names() -> None:
    """An environment made in the first stage runs in the second; the base image can be mirrored or replaced."""
    (argument,) = texts("ARG")

    assert argument.startswith("PYTHON_IMAGE=python:3.")
    assert "/" not in argument
    assert texts("FROM") == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]


def test_nothing_is_installed_unpinned() -> None:
    """Every installation checks hashes, or takes the wheel that was just built."""
    installs = [part for text in texts("RUN") for part in text.split("&&") if " install " in part]

    assert len(installs) == 3
    assert all("--require-hashes" in part or "--no-deps --no-index dist/*.whl" in part for part in installs)


def test_the_final_stage_holds_the_environment_and_nothing_else() -> None:
    """No compiler, no source, no pip: one folder is taken over."""
    final = STEPS[max(index for index, step in enumerate(STEPS) if step.name == "FROM") :]

    assert [step.text for step in final if step.name in {"COPY", "RUN"}] == ["--from=build ${APP} ${APP}"]


def test_image_and_chart_run_the_same_program_as_the_same_user() -> None:
    """The chart's user, port and argument are the image's."""
    deployment = (tidy.ROOT / "charts/graphsched/templates/deployment.yaml").read_text()
    values = yaml.safe_load((tidy.ROOT / "charts/graphsched/values.yaml").read_text())

    assert texts("USER") == ["65532:65532"]
    assert {"65532"} == set(re.findall(r"runAs(?:User|Group): (\d+)", deployment))
    assert [str(values["http"]["port"])] == texts("EXPOSE")
    assert [["graphsched"], ["run"]] == [json.loads(text) for text in texts("ENTRYPOINT") + texts("CMD")]


def test_the_builder_sees_only_what_is_copied() -> None:
    """What the Dockerfile copies is let through, and nothing more: no environment, no history, no secret."""
    ignore = (tidy.ROOT / ".dockerignore").read_text().splitlines()
    copied = {word for text in texts("COPY") if "--from" not in text for word in text.split()[:-1]}

    assert "*" in ignore
    assert copied == {line.removeprefix("!") for line in ignore if line.startswith("!")}
