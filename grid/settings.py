"""Settings, read from the environment; each has a default that is right for one machine.

Sections: paths and readers, security, applications, database, cluster, workspaces, notifications, static files, logging.
"""

from pathlib import Path

import environ
from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from grid.core import data_files as keptfiles, labels
from grid.core.origins import beyond_loopback
from grid.core.translation import FOLDER, LANGUAGE

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.FileAwareEnv()  # NAME_FILE is read in place of NAME: mounted secrets

# --- Paths -----------------------------------------------------------------------------------------------------------
# All files that this program writes on one machine; ignored by git.
VAR_DIR = Path(env.str("GRID_VAR", default=str(BASE_DIR / "var")))
# The embedded cluster's pulled images; several installations of one user may share them.
IMAGES_DIR = Path(env.str("GRID_IMAGES", default=str(VAR_DIR / "images")))

# --- Security --------------------------------------------------------------------------------------------------------
# Debugging shows source and settings with each error, so only this machine is served.
DEBUG = env.bool("GRID_DEBUG", default=False)
# Demo mode: accounts with printed passwords, so only a loopback address is served (checked by grid.checks and by the server).
DEMO = env.bool("GRID_DEMO", default=False)
SECRET_KEY = env.str("GRID_SECRET_KEY", default="")
if not SECRET_KEY:
    _secret_file = VAR_DIR / keptfiles.SECRET_KEY.name
    if _damages := keptfiles.damages(VAR_DIR, [keptfiles.SECRET_KEY]):
        raise ImproperlyConfigured(_damages[0])
    if _secret_file.exists():
        SECRET_KEY = _secret_file.read_text().strip()
    elif DEMO or DEBUG:
        SECRET_KEY = "for-development-on-loopback-only"
    else:
        raise ImproperlyConfigured("Set GRID_SECRET_KEY (or GRID_SECRET_KEY_FILE) to a long random text.")
# What encrypts stored secrets: the first key; all decrypt (grid.database.encryption).
ENCRYPTION_KEYS = env.list("GRID_ENCRYPTION_KEYS", default=[]) or [SECRET_KEY]
# The dashboard has one origin, each execution one of its own below the workspaces' host name: what a program serves must never act
# as the dashboard, nor as another program. Where there can be no wildcard host name, all executions share one origin by path.
DASHBOARD_ORIGIN = env.str("GRID_DASHBOARD_ORIGIN", default="http://127.0.0.1:8000")
WORKSPACE_ORIGIN = env.str("GRID_WORKSPACE_ORIGIN", default="http://localhost:8001")
WORKSPACE_PATHS = env.bool("GRID_WORKSPACE_PATHS", default=False)
ALLOWED_HOSTS = env.list("GRID_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
if DEMO:
    ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
# Where it listens, `manage.py web` and `grid.edge.wrappers` check.
if DEBUG and (_public := beyond_loopback(DASHBOARD_ORIGIN, WORKSPACE_ORIGIN, ALLOWED_HOSTS)):
    raise ImproperlyConfigured(
        f"GRID_DEBUG shows source and settings to whoever asks, so it is for this machine alone, and {_public} leads beyond it. "
        "Leave GRID_DEBUG out, or set that to 127.0.0.1 or localhost."
    )
CSRF_TRUSTED_ORIGINS = [DASHBOARD_ORIGIN]
_https = DASHBOARD_ORIGIN.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https
_behind_proxy = env.bool("GRID_BEHIND_TLS_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _behind_proxy else None
# Addresses and networks of the proxies in front, which say in X-Forwarded-For who asks: limits and logins count by address.
TRUSTED_PROXIES = env.list("GRID_TRUSTED_PROXIES", default=["127.0.0.0/8", "::1"]) if _behind_proxy else []
# For this time browsers use only https; requests by http are redirected, except the kubelet's probes.
SECURE_HSTS_SECONDS = env.int("GRID_HSTS_SECONDS", default=30 * 24 * 60 * 60) if _https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_SECONDS > 0
SECURE_SSL_REDIRECT = _https and SECURE_PROXY_SSL_HEADER is not None
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|freshz)$"]
# Whether to be on browsers' preload lists is up to the owner of the registrable domain.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
# The middleware of django-axes would replace our answer to a locked-out person (dashboard.accounts.forms).
SILENCED_SYSTEM_CHECKS += ["axes.W002"]
# A browser accepts a __Host- cookie only from this very host, by https: no sibling host can replace it.
_cookie_prefix = "__Host-" if _https else ""
SESSION_COOKIE_NAME = f"{_cookie_prefix}grid_session"
CSRF_COOKIE_NAME = f"{_cookie_prefix}grid_csrf"
SESSION_COOKIE_HTTPONLY = True
SESSION_ENGINE = "grid.accounts.sessions"
# The longest that the central configuration allows; grid.accounts.sessions ends sessions earlier.
SESSION_COOKIE_AGE = 30 * 24 * 60 * 60
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]  # nothing is written to disk
# Of an upload into a project's files, its form included; the edge refuses what is longer, and all other forms are far smaller.
FILE_UPLOAD_MAX_MEMORY_SIZE = 21 * 2**20
# No script runs but the tags of our templates, which carry the answer's nonce: a name from the cluster that slipped into a page
# unescaped stays text. A form may lead to the workspaces: Open is one, and browsers check where it redirects to.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [NONCE],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF, WORKSPACE_ORIGIN, WORKSPACE_ORIGIN.replace("://", "://*.", 1)],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

# --- Applications ----------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "csp",
    "django_htmx",
    "grid",
    "dashboard",
]
MIDDLEWARE = [
    "dashboard.shell.middleware.measured",
    "dashboard.shell.middleware.UnstoredMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "dashboard.shell.middleware.ContentSecurityPolicyMiddleware",
    "dashboard.shell.middleware.OwnOriginMiddleware",
    "dashboard.shell.middleware.static_files",
    "django.middleware.gzip.GZipMiddleware",
    "dashboard.shell.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "dashboard.files.uploadnames.ExactNamesMiddleware",  # before the next, which reads the form
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dashboard.shell.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "grid.urls"
ASGI_APPLICATION = "grid.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["django.templatetags.i18n"],  # every template has texts
            "libraries": {
                "alerts": "dashboard.alerts.tags",
                "announcements": "dashboard.announcements.tags",
                "frame": "dashboard.shell.tags.frame",
                "help": "dashboard.shell.tags.help",
                "kept": "dashboard.shell.tags.kept",
                "live": "dashboard.shell.tags.live",
                "logs": "dashboard.files.tags",
                "notifications": "dashboard.notifications.tags",
                "palette": "dashboard.palette.tags",
                "saved_views": "dashboard.shell.tags.saved_views",
            },
        },
    }
]
# The first one refuses locked-out people before a password is checked; see grid.accounts.lockouts.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "grid.accounts.AccountBackend"]
AXES_HANDLER = "grid.accounts.lockouts.LockoutHandler"
AXES_COOLOFF_TIME = "grid.accounts.lockouts.cool_off"
AXES_CLIENT_IP_CALLABLE = "grid.accounts.lockouts.client_network"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address", "username"]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_ENABLE_ADMIN = AXES_VERBOSE = False
AUTH_USER_MODEL = "grid.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}", "OPTIONS": options}
    for name, options in {
        "UserAttributeSimilarityValidator": {},
        "MinimumLengthValidator": {"min_length": 12},
        "CommonPasswordValidator": {},
        "NumericPasswordValidator": {},
    }.items()
]
# One language for all: live pages are made once for everybody, and sentences are stored. English is in the code itself.
LANGUAGE_CODE = LANGUAGE
LOCALE_PATHS = [str(FOLDER)]
USE_I18N = LANGUAGE != "en"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Database --------------------------------------------------------------------------------------------------------
DATABASES = {"default": env.db_url("DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'grid.sqlite3'}")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Web and controller write to one file: readers never wait (WAL), and a writer takes the lock when its transaction
    # begins, because a reader that turns writer half-way fails at once instead of waiting.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
    }
else:
    # Without the first five, a query to a server that vanished would wait for ever. In milliseconds and in seconds:
    # https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-PARAMKEYWORDS
    # With the last two, a statement that a connection repeats is prepared: planning it costs as much as doing it.
    DATABASES["default"]["OPTIONS"] = {
        "connect_timeout": 5,
        "tcp_user_timeout": 10_000,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "server_side_binding": True,
        "prepare_threshold": 5,
        **DATABASES["default"].get("OPTIONS", {}),
    }
# On PostgreSQL, how long a statement may take that pages, requests and the proxy wait for: nobody waits longer, and it would hold one of
# few threads. So it is for the controller, whose steps are short. Commands and migrations have no limit: changing tables may take its time.
STATEMENT_SECONDS = 30.0
# Of a thread's connection, in seconds: opening one for each query costs more than most queries, and one that has failed, or is to
# a file that another was put in place of, is left soon. A server's, for which a process of the server reads its catalog anew, is kept for
# longer, and tried before it is used again where the server has sent anything (`grid.database.threads`).
DATABASES["default"].setdefault("CONN_MAX_AGE", 60 if "postgresql" in DATABASES["default"]["ENGINE"] else 10)
DATABASES["default"].setdefault("CONN_HEALTH_CHECKS", True)

# --- Cluster ---------------------------------------------------------------------------------------------------------
# Path of a kubeconfig; empty means in-cluster credentials when there are some, else ~/.kube/config.
KUBECONFIG = env.str("KUBECONFIG", default="")
# Context of that kubeconfig; empty means its current one.
KUBE_CONTEXT = env.str("GRID_KUBE_CONTEXT", default="")
# Namespace of all executions.
GRID_NAMESPACE = env.str("GRID_NAMESPACE", default="compute-grid")
LABEL_PREFIX, NODE_POOL_LABEL = labels.PREFIX, labels.NODE_POOL
# Access mode and storage class of projects' volumes: ReadWriteOnce when a volume serves one node at a time; "" is the default class.
VOLUME_ACCESS_MODE = env.str("GRID_VOLUME_ACCESS_MODE", default="ReadWriteMany")
VOLUME_STORAGE_CLASS = env.str("GRID_VOLUME_STORAGE_CLASS", default="")
# The directory of the repositories of projects whose files are in Git, where the web process finds them; empty: no project has.
REPOSITORIES = env.str("GRID_REPOSITORIES", default="")
# The claim of that volume in the executions' namespace, the image that fetches and saves files, and what it reserves in each pod.
REPOSITORIES_CLAIM = env.str("GRID_REPOSITORIES_CLAIM", default="repositories")
# What placeholders of tiers' warm-up hours run: a program that does nothing.
PLACEHOLDER_IMAGE = env.str("GRID_PLACEHOLDER_IMAGE", default="registry.k8s.io/pause:3.10")
EXECUTOR_IMAGE = env.str("GRID_EXECUTOR_IMAGE", default="compute-grid/executor:1")
EXECUTOR_CORES = env.str("GRID_EXECUTOR_CORES", default="50m")
EXECUTOR_MEMORY = env.str("GRID_EXECUTOR_MEMORY", default="64Mi")
# The rootless builder of environments' revisions (buildkit or buildah; empty: none), its image if not its project's own, where it runs, the
# repository that it pushes to, and the name of the Secret with the registry's credentials there.
BUILDER = env.str("GRID_BUILDER", default="")
BUILD_IMAGE = env.str("GRID_BUILD_IMAGE", default="")
BUILD_NAMESPACE = env.str("GRID_BUILD_NAMESPACE", default="compute-grid-builds")
BUILD_REPOSITORY = env.str("GRID_BUILD_REPOSITORY", default="")
BUILD_SECRET = env.str("GRID_BUILD_SECRET", default="")
BUILD_CORES = env.str("GRID_BUILD_CORES", default="1")
BUILD_MEMORY = env.str("GRID_BUILD_MEMORY", default="4Gi")
# Where packages come from when a revision is built there; empty: what the base's own pip is configured for.
PACKAGE_INDEX = env.str("GRID_PACKAGE_INDEX", default="")
# The index that is asked which packages are vulnerable or yanked; empty: none is.
PACKAGE_ADVISORIES = env.str(
    "GRID_PACKAGE_ADVISORIES", default=PACKAGE_INDEX or env.str("PIP_INDEX_URL", default="https://pypi.org/simple")
)
# The image of the nginx in front of workspaces and apps, and what it reserves in each such pod; without an image there is none.
FRONT_IMAGE = env.str("GRID_FRONT_IMAGE", default="")
FRONT_CORES = env.str("GRID_FRONT_CORES", default="10m")
FRONT_MEMORY = env.str("GRID_FRONT_MEMORY", default="32Mi")
# People's requests straight to the pods of workspaces and apps, see docs/installation.md: the class of the ingress (empty: they come
# through our proxy), the namespace of its controller, the Secret with its certificate, and where it reaches our proxy.
INGRESS_CLASS = env.str("GRID_INGRESS_CLASS", default="")
INGRESS_NAMESPACE = env.str("GRID_INGRESS_NAMESPACE", default="ingress-nginx")
INGRESS_TLS_SECRET = env.str("GRID_INGRESS_TLS_SECRET", default="")
INGRESS_PROXY = env.str("GRID_INGRESS_PROXY", default="proxy.compute-grid-system.svc.cluster.local:80")
# Blocks of private addresses that projects' remote repositories may lead to when we connect to them, see grid.core.egress; and a file of
# certificates that are trusted there instead of the machine's.
GIT_PRIVATE = env.list("GRID_GIT_PRIVATE", default=[])
GIT_AUTHORITIES = env.str("GRID_GIT_AUTHORITIES", default="")
# Destinations outside the cluster that executions may connect to, see grid.core.egress; empty means none.
EGRESS = env.list("GRID_EGRESS", default=["0.0.0.0/0", "::/0"])
STORAGE_EGRESS = env.list("GRID_STORAGE_EGRESS", default=[])
EGRESS_EXCEPT = env.list("GRID_EGRESS_EXCEPT", default=[])
# What an Alertmanager that tells us of alerts says as its bearer token; "" takes none.
ALERTS_TOKEN = env.str("GRID_ALERTS_TOKEN", default="")
# The Alertmanager that the controller passes silences on to; "" passes none on.
ALERTMANAGER_URL = env.str("GRID_ALERTMANAGER_URL", default="")
# Usage comes from Prometheus when this is set, else from metrics.k8s.io.
PROMETHEUS_URL = env.str("GRID_PROMETHEUS_URL", default="")
# Port on which the web process serves external.metrics.k8s.io, so that clusters scale on demand; 0: not served.
DEMAND_PORT = env.int("GRID_DEMAND_PORT", default=0)
DEMAND_HOST = env.str("GRID_DEMAND_HOST", default="127.0.0.1")
# The Service by which the API server reaches that port, as NAME.NAMESPACE:PORT; and the host where the controller asks whether it
# answers, when that is not the Service's own name.
DEMAND_SERVICE = env.str("GRID_DEMAND_SERVICE", default="demand.compute-grid-system:443")
DEMAND_ADDRESS = env.str("GRID_DEMAND_ADDRESS", default="")
# Whether clusters may scale on demand, for waiting tasks.
DEMAND_IS_SERVED = DEMAND_PORT > 0
# Ports on which web process, proxy and controller serve metrics to a monitoring system; 0: not served. Ports of their own, so that
# nothing is added to what people can reach.
METRICS_PORT = env.int("GRID_METRICS_PORT", default=0)
PROXY_METRICS_PORT = env.int("GRID_PROXY_METRICS_PORT", default=0)
CONTROLLER_METRICS_PORT = env.int("GRID_CONTROLLER_METRICS_PORT", default=0)
METRICS_HOST = env.str("GRID_METRICS_HOST", default="127.0.0.1")

# --- Notifications ---------------------------------------------------------------------------------------------------
# The SMTP server that the controller sends e-mail through; without it, or without a sender's address, no e-mail is offered.
EMAIL_HOST = env.str("GRID_EMAIL_HOST", default="")
EMAIL_TLS = env.str("GRID_EMAIL_TLS", default="starttls")  # starttls, tls, or none
EMAIL_USE_TLS, EMAIL_USE_SSL = EMAIL_TLS == "starttls", EMAIL_TLS == "tls"
EMAIL_PORT = env.int("GRID_EMAIL_PORT", default={"starttls": 587, "tls": 465}.get(EMAIL_TLS, 25))
EMAIL_HOST_USER = env.str("GRID_EMAIL_USER", default="")
EMAIL_HOST_PASSWORD = env.str("GRID_EMAIL_PASSWORD", default="")
EMAIL_TIMEOUT = 10  # seconds, of each step of a conversation
DEFAULT_FROM_EMAIL = env.str("GRID_EMAIL_FROM", default="")
# Blocks of private addresses that people's webhooks may lead to, see grid.core.egress; a machine's own credentials are never among them.
WEBHOOK_PRIVATE = env.list("GRID_WEBHOOK_PRIVATE", default=[])

# --- Executions' logs ------------------------------------------------------------------------------------------------
# What the controller sends them to by the OpenTelemetry protocol: its address without /v1/logs; empty: they stay here, as their end.
LOG_RECEIVER_URL = env.str("GRID_LOG_RECEIVER_URL", default="")
# The whole header, such as "Bearer ..." or "Basic ..."; secret, and never part of an address.
LOG_RECEIVER_AUTHORIZATION = env.str("GRID_LOG_RECEIVER_AUTHORIZATION", default="").strip()
LOG_RECEIVER_TENANT = env.str("GRID_LOG_RECEIVER_TENANT", default="")  # X-Scope-OrgID, of Loki
LOG_RECEIVER_AUTHORITIES = env.str("GRID_LOG_RECEIVER_AUTHORITIES", default="")  # file of certificates
# Where people find all lines of an execution: an address with {execution} in the place of its id; empty: no link.
LOG_LINK = env.str("GRID_LOG_LINK", default="")
LOG_LINK_NAME = env.str("GRID_LOG_LINK_NAME", default="the log receiver")

# --- Static files ----------------------------------------------------------------------------------------------------
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served from the sources, so that the first start needs no extra step; an installation that collects static files names a folder.
STATIC_ROOT = env.str("GRID_STATIC_ROOT", default="") or None
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
WHITENOISE_AUTOREFRESH = DEBUG

# --- Logging ---------------------------------------------------------------------------------------------------------
LOG_FORMAT = env.str("GRID_LOG_FORMAT", default="text")  # text or json
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "grid.edge.logs.LineFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
            "datefmt": "%Y-%m-%dT%H:%M:%S%z",
        },
        "json": {"()": "grid.edge.logs.JsonFormatter"},
    },
    "filters": {
        "verbosity": {"()": "grid.observability.logcontext.Verbosity"},
        "client faults": {"()": "grid.edge.logs.ClientFaults"},
        "database troubles": {"()": "grid.edge.logs.DatabaseTroubles"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "json" if LOG_FORMAT == "json" else "line",
            "filters": ["verbosity", "client faults", "database troubles"],
        }
    },
    "loggers": {
        "axes": {"level": "WARNING"},  # grid.accounts.lockouts says the same in fewer lines
        "grid.edge.websocket": {"level": "WARNING"},  # uvicorn would log the connection of each live page
    },
    "root": {"handlers": ["stderr"], "level": env.str("GRID_LOG_LEVEL", default="INFO")},
}
