# The image of graphsched: a stage that builds, and a slim one that runs as nobody in particular.
#
#   docker build --tag graphsched .
#
# `make image-steps` runs the same instructions on this machine, in a temporary folder: it reads them from here. So
# every path that a step writes to is named by an ENV variable, and the base image is all that it takes for granted.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ENV SOURCE=/src TOOLS=/tools APP=/opt/graphsched
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
WORKDIR ${SOURCE}

# Dependencies first: they change less often than the code, and their layer is kept.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv "$TOOLS" && "$TOOLS/bin/pip" install --require-hashes --requirement requirements-build.lock
RUN python -m venv --without-pip "$APP"
RUN "$TOOLS/bin/pip" --python "$APP/bin/python" install --require-hashes --requirement requirements.lock

COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY schemas schemas
COPY graphsched graphsched
RUN "$TOOLS/bin/pip" wheel --no-deps --no-build-isolation --wheel-dir dist .
RUN "$TOOLS/bin/pip" --python "$APP/bin/python" install --no-deps --no-index dist/*.whl

FROM ${PYTHON_IMAGE}
ENV APP=/opt/graphsched
# The root file system may be read-only; output must not wait in a buffer.
ENV PATH=${APP}/bin:${PATH} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build ${APP} ${APP}
USER 65532:65532
EXPOSE 10260
ENTRYPOINT ["graphsched"]
CMD ["run"]
