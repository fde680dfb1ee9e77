# The image that fetches and saves project files in Git, beside a program; from the project's folder:
#   docker build -f deploy/executor.Dockerfile -t registry.example.com/compute-grid-executor:0.1.0 .
# The base is named with its digest, as in Dockerfile.
FROM python:3.11.16-slim-trixie@sha256:1042b61448fef4ba92d16a8c7eb4996d027568ce64792a7877fd88511e0af7c6
RUN apt-get update && apt-get install -y --no-install-recommends git openssh-client && rm -rf /var/lib/apt/lists/*
# ssh asks for the name of the user that it runs as.
RUN useradd --uid 1000 --no-create-home executor
COPY grid/files/executor /executor
USER 1000:1000
ENTRYPOINT ["python3", "-I", "/executor"]
