"""Objects as HTTP answers."""

import msgspec
import yaml
from aiohttp import web

from grid.sandbox.apiserver.bodies import JSON, Form
from grid.sandbox.apiserver.kinds import Object


def json_answer(
    body: Object,
    code: int = 200,
    headers: dict[str, str] | None = None,
    *,
    content_type: str = JSON,
    form: Form | None = None,
) -> web.Response:
    """Return the object as JSON, or as YAML when the client asked for YAML."""
    if form is not None and form.yaml:
        return web.Response(text=yaml.safe_dump(body), status=code, content_type="application/yaml")
    response = web.Response(body=msgspec.json.encode(body), status=code, headers=headers)
    response.headers["Content-Type"] = content_type
    return response
