"""The front of a workspace or app: the configuration of the nginx beside its program, and the token that nginx checks. nginx answers only
requests with a token of ours that has not expired: `secure_link`, which is compiled into Debian's nginx and into the stock image, compares
an MD5 of the execution's id, the time and a key. The key is 256 random-looking bits that the program does not know and that no page shows;
it is on both sides of what is hashed, so that neither an extension nor a collision of MD5 gives a valid token."""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec
from django.conf import settings

from grid.core.labels import PREFIX
from grid.core.origins import Origins
from grid.core.translation import LANGUAGE, gettext as _
from grid.diagnosis.beside import FRONT_PORTS

TOKEN_HEADER, STATE_HEADER, OPEN_HEADER = "x-grid-token", "x-grid-run", "x-grid-open"
PROBE_HEADER = "x-grid-probe"
CRASHED = "crashed"  # what STATE_HEADER says of a program that has ended and is started again
STATUS_PATH, USE_PATH, _PROBE_PATH = "/__grid__/front", "/__grid__/use", "/__grid__/probe"
# An open JupyterLab stores its layout every ten seconds, whether or not anybody is there.
STORED_UNATTENDED = "/lab/api/workspaces/"
KEY_FILE = "key.conf"
# As long as the clocks of the proxy and of a node may differ, and no longer than a stolen token should be of use.
TOKEN_SECONDS = 120
# Filled in when its container starts, where they are known: the pod's address, its own loopback, and the program's Unix socket.
ADDRESS, PROGRAM_HOST, PROGRAM_SOCKET = "POD_ADDRESS", "PROGRAM_HOST", "PROGRAM_SOCKET"
_HEAD = f"{PREFIX} front"

_CONFIGURATION = """\
daemon off;
# Where it runs as root, as an embedded cluster of root's, it reads what it wrote; for anybody else nginx ignores this.
user root;
worker_processes 1;
worker_rlimit_nofile 8192;
pid nginx.pid;
# Less serious messages have the requests' URLs in them, as "crit" of a socket that is not there yet.
error_log stderr alert;
events {{
    worker_connections 4096;
}}
http {{
    default_type text/plain;
    server_tokens off;
    # When people were active, and how much; no URL, which may hold their secrets.
    log_format activity '$time_iso8601 $request_method $status $bytes_sent';
    access_log /dev/stdout activity buffer=4k flush=5s;
    # When a person last did something: the time of this file's last byte. The same rule as the proxy's (`_is_use`).
    map "$request_method $http_sec_fetch_mode $http_sec_fetch_user $uri" $by_person {{
        default $request_method;
        "~^(GET|HEAD|OPTIONS) navigate \\?1 " navigation;
        "~^(GET|HEAD|OPTIONS) " '';
        "~{unattended}" '';
    }}
    # At most six bytes a minute, or its memory would fill up; no request is refused or delayed by this.
    limit_req_zone $by_person zone=people:32k rate=6r/m;
    limit_req_dry_run on;
    map $limit_req_status $is_noted {{
        default '';
        PASSED 1;
    }}
    log_format mark '.';
    access_log used mark if=$is_noted;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    large_client_header_buffers 8 64k;
    ignore_invalid_headers off;
    map $http_upgrade $to_program {{
        default upgrade;
        '' close;
    }}
    map $http_x_grid_run $page {{
        default {starting};
        {crashed_state} {crashed};
    }}
    upstream program {{
{servers}    }}
{maps}    server {{
        listen {address}:{listen};
        secure_link $http_x_grid_token;
        include {key_file};
        # The kubelet's probe, which has no token that expires, learns whether the program answers and no more.
        if ($http_x_grid_probe = $probe_key) {{
            rewrite ^ {probe_path}? last;
        }}
        if ($secure_link != 1) {{
            return 403 'Open this from the dashboard.';
        }}
        location = {status_path} {{
            access_log off;
            stub_status;
        }}
        location = {use_path} {{
            access_log off;
            alias used;
            etag off;
            if_modified_since off;
            max_ranges 0;
            # Websockets and requests that are open now, this one among them.
            add_header {open_header} $connections_writing;
        }}
        location = {probe_path} {{
            internal;
            access_log off;
{probe_method}            proxy_pass http://program$request_uri;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header X-Grid-Probe '';
            proxy_next_upstream {next};
            proxy_intercept_errors on;
            error_page {answers} = @answers;
        }}
        location @answers {{
            access_log off;
            return 204;
        }}
        location / {{
            limit_req zone=people;
            client_max_body_size {body_mebibytes}m;
            client_body_timeout 1d;
            send_timeout 1d;
            error_page 413 @too_large;
            error_page 502 504 @not_there;
            proxy_pass http://program;
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $to_program;
            proxy_set_header X-Grid-Token '';
            proxy_set_header X-Grid-Run '';
{straight}            proxy_buffering off;
            proxy_request_buffering off;
            proxy_connect_timeout 5s;
            proxy_read_timeout 1d;
            proxy_send_timeout 1d;
            proxy_next_upstream {next};
            proxy_redirect off;
            proxy_pass_header Date;
            proxy_pass_header Server;
            # The program's answers are for the browser; nginx obeys none of them.
            proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset;
        }}
        location @too_large {{
            return 413 {too_large};
        }}
        location @not_there {{
            default_type 'text/html; charset=utf-8';
            add_header Cache-Control no-store always;
            add_header Retry-After 3 always;
            return 502 $page;
        }}
    }}
}}
"""


# What our proxy does on its way, where requests come from an ingress: the program sees none of our cookies, its own lose their Domain
# (but for one with a tab before the word, which nginx does not find; ours are safe from it by `__Host-`, so only on https), and its
# windows and files are kept apart from other origins' (`dashboard.proxy.headers`).
_STRAIGHT_MAPS = """\
    map $http_cookie $without_first {
        default $http_cookie;
        "~*^(?<before>(?:.*;)?[ \t]*)(?:__Host-|__Secure-)?grid_[^;]*(?:;[ \t]*(?<after>.*))?$" $before$after;
    }
    map $without_first $without_second {
        default $without_first;
        "~*^(?<before2>(?:.*;)?[ \t]*)(?:__Host-|__Secure-)?grid_[^;]*(?:;[ \t]*(?<after2>.*))?$" $before2$after2;
    }
    # More of them are nobody's: then the program gets no cookie at all.
    map $without_second $their_cookies {
        default $without_second;
        "~*(?:^|;)[ \t]*(?:__Host-|__Secure-)?grid_" '';
    }
    map $upstream_http_cross_origin_opener_policy $opener_policy {
        default '';
        '' same-origin-allow-popups;
    }
    map $upstream_http_cross_origin_resource_policy $resource_policy {
        default '';
        '' same-origin;
    }
"""
_STRAIGHT = """\
            proxy_set_header Cookie $their_cookies;
            proxy_set_header Forwarded '';
            proxy_set_header X-Forwarded-Prefix '';
            proxy_set_header X-Forwarded-Context '';
            proxy_cookie_domain ~. '';
            proxy_hide_header Clear-Site-Data;
            proxy_hide_header Strict-Transport-Security;
            proxy_hide_header Origin-Agent-Cluster;
            add_header Content-Security-Policy "frame-ancestors 'self'" always;
            add_header Origin-Agent-Cluster ?1 always;
            add_header Cross-Origin-Opener-Policy $opener_policy always;
            add_header Cross-Origin-Resource-Policy $resource_policy always;
"""


class IngressSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The ingress that sends people's requests straight to the front: its class, the Secret with its certificate ("" for its own), the
    execution's origin, and host and port at which it reaches our proxy."""

    class_name: str
    tls_secret: str
    origin: str
    proxy: str

    @property
    def host(self) -> str:
        """The host name without a port, as an Ingress names it."""
        return urlsplit(self.origin).hostname or ""


class AuthProxySpec(msgspec.Struct, frozen=True, kw_only=True):
    """The nginx in front of a program's web server: its image and requests, the port it listens on, the largest body of a request, and
    the execution's page on the dashboard, to which its own pages link."""

    image: str
    port: int
    cores: str
    memory: str
    body_mebibytes: int
    page: str = ""
    ingress: IngressSpec | None = None  # None: requests come through our proxy alone


def front_port(program: int) -> int:
    """Return the port for the front of a program that listens on the port `program`."""
    return next(port for port in FRONT_PORTS if port != program)


def configuration(front: AuthProxySpec, *, upstream: Sequence[str], is_any_answer_ready: bool) -> str:
    """Return nginx.conf for a program at one of the servers `upstream`. Its relative paths are below the folder that nginx is started in;
    the key is in a file of its own beside it. The kubelet's probe succeeds with what the program answers; or with any answer, to a
    question that makes no program work."""
    starting = _("The program is starting and does not answer yet. This page reloads by itself every 3 seconds.")
    crashed = _(
        "It has ended and is being started again. This page reloads by itself every 3 seconds. Its log says why it ended."
    )
    too_large = _("The upload is larger than {size} MiB, which is the limit here. An admin can raise it.")
    redirects = [code for code in HTTPStatus if 300 <= code < 400]
    # 502 and 504 are nginx's own words for a program that does not answer.
    answers = [code for code in HTTPStatus if code >= 300 and code not in (502, 504)]
    return _CONFIGURATION.format(
        starting=_quoted(_page(_("Starting"), starting, front.page)),
        crashed=_quoted(_page(_("The program has crashed"), crashed, front.page)),
        crashed_state=CRASHED,
        address=ADDRESS,
        listen=front.port,
        servers="".join(f"        server {server};\n" for server in upstream),
        # What a program has refused to accept may be tried elsewhere; nginx itself repeats no POST that a program was sent.
        next="error" if len(upstream) > 1 else "off",
        probe_path=_PROBE_PATH,
        probe_method="            proxy_method OPTIONS;\n" if is_any_answer_ready else "",
        answers=" ".join(str(int(code)) for code in (answers if is_any_answer_ready else redirects)),
        key_file=KEY_FILE,
        status_path=STATUS_PATH,
        straight=_STRAIGHT if front.ingress else "",
        maps=_STRAIGHT_MAPS if front.ingress else "",
        use_path=USE_PATH,
        open_header=OPEN_HEADER,
        unattended=STORED_UNATTENDED,
        too_large=_quoted(too_large.format(size=front.body_mebibytes)),
        body_mebibytes=front.body_mebibytes,
    )


def key_file(execution_id: str, key: str) -> str:
    """Return the file with the key, which is kept in a Secret: what nginx compares with the token, and with the header of a probe."""
    hashed = _hashed(execution_id, "$secure_link_expires", key)
    return f'secure_link_md5 "{hashed}";\nset $probe_key "{probe_key(execution_id, key)}";\n'


def probe_key(execution_id: str, key: str) -> str:
    """Return what the kubelet's probe shows to this execution's front. Whoever may look at the pod sees it; it opens nothing."""
    return hashlib.sha256(f"{PREFIX} probe {execution_id} {key}".encode()).hexdigest()


def token(execution_id: str, key: str, expires: int) -> str:
    """Return the header's value that opens this execution's front until `expires`, in seconds of the Unix epoch."""
    digest = hashlib.md5(_hashed(execution_id, str(expires), key).encode(), usedforsecurity=False).digest()
    return f"{base64.urlsafe_b64encode(digest).decode().rstrip('=')},{expires}"


def _hashed(execution_id: str, expires: str, key: str) -> str:
    return f"{key} {_HEAD} {execution_id} {expires} {key}"


def _page(title: str, sentence: str, page: str) -> str:
    link = f'<p><a href="{escape(page)}" target="_top">{escape(_("Its page on the dashboard"))}</a></p>' if page else ""
    return (
        f'<!doctype html><html lang="{LANGUAGE}"><head><meta charset="utf-8"><meta http-equiv="refresh" content="3">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title></head>"
        '<body style="font-family:system-ui,sans-serif;max-width:40em;margin:10vh auto;padding:0 1em">'
        f"<h1>{escape(title)}</h1><p>{escape(sentence)}</p>{link}</body></html>"
    )


def _quoted(text: str) -> str:
    """Return the HTML as one word of nginx's language, which has no escape for a dollar."""
    escaped = text.replace("\\", "&#92;").replace("'", "&#39;").replace("$", "&#36;")
    return f"'{escaped}'"


def access_token(execution_id: str) -> str:
    """Return 64 hexadecimal digits; one execution's token tells nothing about another's. It is derived, so no process has to store or share
    it, and a retry makes the same Secret."""
    return _derived(settings.SECRET_KEY, f"compute-grid execution {execution_id}")


def front_key(execution_id: str) -> str:
    """Return the key of the tokens that the execution's front checks: 64 hexadecimal digits, which its program does not know."""
    return _derived(settings.SECRET_KEY, f"compute-grid front {execution_id}")


@lru_cache(4096)  # each request to a program needs one or two
def _derived(key: str, purpose: str) -> str:
    return hmac.new(key.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def workspace_origins() -> Origins:
    return Origins(settings.WORKSPACE_ORIGIN.rstrip("/"), by_path=settings.WORKSPACE_PATHS)
