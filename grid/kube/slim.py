"""The base of the slim typed views in `grid.kube.objects`."""

import msgspec


class Slim(msgspec.Struct, frozen=True, rename="camel", kw_only=True, gc=False):
    """The base of all views: immutable, camelCase on the wire, unknown fields skipped."""
