"""Keeps the names of uploaded files to the letter, so that `problem_of_name` sees what the person's file is called.

Django's parser decodes HTML entities, drops what it does not count as printable (U+00A0, and U+202F, which macOS writes before AM and PM),
and takes a backslash for a separator, all without a word. It runs before any view, as the CSRF middleware reads the form.
"""

from typing import Any

from django.http import HttpRequest, QueryDict
from django.http.multipartparser import MultiPartParser
from django.utils.datastructures import ImmutableList, MultiValueDict
from django.utils.deprecation import MiddlewareMixin

from dashboard.shell.middleware import OnLoop
from grid.core.regexes import Expression

_UPLOADS = Expression(r"/projects/[^/]+/files/upload/")  # of other forms no name of a file is stored


class ExactNamesParser(MultiPartParser):
    def sanitize_file_name(self, file_name: str) -> str | None:
        """Return the name as it was sent; of a path, which no name can be, the last part."""
        name = file_name.rpartition("/")[2]
        return None if name in ("", ".", "..") else name


class ExactNamesMiddleware(OnLoop, MiddlewareMixin):
    """Has the files of an upload into a project keep their names."""

    def process_request(self, request: HttpRequest) -> None:
        if request.method != "POST" or not _UPLOADS.fullmatch(request.path_info):
            return

        def parsed(meta: Any, body: Any) -> tuple[QueryDict, MultiValueDict[str, Any]]:
            # As HttpRequest.parse_file_upload, which names its parser itself.
            request.upload_handlers = ImmutableList(request.upload_handlers)
            return ExactNamesParser(meta, body, request.upload_handlers, request.encoding).parse()

        request.parse_file_upload = parsed  # type: ignore[assignment, method-assign]
