"""One real Prometheus for all tests of a session that ask one; each says what it is to scrape."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import yaml

from tests.support.ports import free_ports

PROGRAM = shutil.which("prometheus")
SECONDS = 90.0
MISSING = "needs Debian's package prometheus"


class RealPrometheus:
    """A server that scrapes nothing until it is told what."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_ports(1)
        self._file = folder / "prometheus.yml"
        self._write({})
        assert PROGRAM is not None, MISSING
        command = [PROGRAM, f"--config.file={self._file}", f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address=127.0.0.1:{self._port}", "--web.enable-lifecycle", "--log.level=warn"]
        with (folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def follow(self, configuration: Mapping[str, Any]) -> None:
        """Scrape by this configuration from now on, and nothing of an earlier one; what was scraped stays."""
        deadline = time.monotonic() + SECONDS
        self._write(configuration)
        while True:
            try:
                with urlopen(Request(f"{self.url}/-/reload", method="POST"), timeout=SECONDS):
                    return
            except URLError as error:  # it is still starting, or the configuration is wrong
                assert not self.is_hopeless(deadline), f"{error}\n{self.log()}"
                time.sleep(0.1)

    def wait_for(self, series: str) -> None:
        """Return when the series has a present value."""
        deadline = time.monotonic() + SECONDS
        while True:
            with urlopen(f"{self.url}/api/v1/query?{urlencode({'query': series})}", timeout=SECONDS) as answer:
                if json.load(answer)["data"]["result"]:
                    return
            assert not self.is_hopeless(deadline), f"{series} has no value\n{self.log()}"
            time.sleep(0.1)

    def is_hopeless(self, deadline: float) -> bool:
        return time.monotonic() > deadline or self._process.poll() is not None

    def log(self) -> str:
        return (self._folder / "prometheus.log").read_text()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _write(self, configuration: Mapping[str, Any]) -> None:
        # The history of a scene comes in one scrape, after samples of the present.
        late = {"storage": {"tsdb": {"out_of_order_time_window": "2h"}}}
        self._file.write_text(yaml.safe_dump({**configuration, **late}))


@contextmanager
def exposed(text: str) -> Iterator[Mapping[str, Any]]:
    """Serve the text as metrics, and give the configuration of a Prometheus that scrapes them each second."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    times = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    targets = [{"targets": [f"127.0.0.1:{server.server_port}"]}]
    try:
        yield {"global": times, "scrape_configs": [{"job_name": "scene", "static_configs": targets}]}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
