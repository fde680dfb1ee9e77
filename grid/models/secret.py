"""Stored secrets: passwords, keys and files that programs need and that nobody may read again."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.environment import VARIABLE_NAME
from grid.models.fields import Named, validate_file_name
from grid.models.project import Project


class StoredSecret(Named):
    """A project's secret without an `owner`; with one that person's, in all projects or, with a `project`, in that one alone. `ciphertext`
    is `grid.database.encryption`'s. Only the controller decrypts it, when it creates an execution's objects."""

    name = models.CharField(max_length=100)
    is_file = models.BooleanField(default=False, help_text="A file of that name, instead of an environment variable.")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="secrets", null=True, blank=True
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="secrets", null=True, blank=True)
    ciphertext = models.TextField()
    changed_at = models.DateTimeField(default=timezone.now)
    changed_by = models.CharField(max_length=150)

    class Meta:
        ordering = ["name"]
        constraints = [
            CheckConstraint(condition=Q(owner__isnull=False) | Q(project__isnull=False), name="secret_is_somebodys"),
            UniqueConstraint(
                fields=["project", "name"], condition=Q(owner__isnull=True), name="projects_secret_named_once"
            ),
            UniqueConstraint(fields=["owner", "name"], condition=Q(project__isnull=True), name="own_secret_named_once"),
            UniqueConstraint(
                fields=["owner", "project", "name"],
                condition=Q(owner__isnull=False, project__isnull=False),
                name="own_secret_in_project_named_once",
            ),
        ]

    def clean(self) -> None:
        errors: dict[str, Any] = {}
        if self.is_file:
            try:
                validate_file_name(self.name)
            except ValidationError as error:
                errors["name"] = error
        elif not VARIABLE_NAME.fullmatch(self.name):
            errors["name"] = _("Use letters, digits and underscores, and begin with a letter, such as DB_PASSWORD.")
        elif is_taken(self.name):
            errors["name"] = _("{name} is set by Compute Grid itself. Choose another name.", name=self.name)
        elif self.owner_id is None and is_obeyed(self.name):
            errors["name"] = _(
                "{name} decides what programs of other members load, run or trust, so a project cannot set it for them. "
                "Choose another name, or store it as your own secret."
            ).format(name=self.name)
        if errors:
            raise ValidationError(errors)


TAKEN_NAMES = frozenset({"HOME", "JUPYTER_RUNTIME_DIR", "JUPYTER_TOKEN", "POD_IP", "POD_NAME"})
TAKEN_PREFIX = "GRID_"

# Programs are started with a person's HOME and own secrets. A variable that a loader, an interpreter, a shell or a usual tool obeys can
# make them run what lies in the project's files, which every contributor writes. So whoever contributes sets none of those for others.
# Compared in capitals, because npm and proxies read small letters too.
_OBEYED_PREFIXES = (
    *("LD_", "DYLD_", "BASH", "LESS", "XDG_"),
    *("PYTHON", "PYSPARK_", "IPYTHON", "JUPYTER", "PIP_", "UV_", "CONDA", "MAMBA", "MPL", "MATPLOTLIB"),
    *("DASK_", "RAY_", "SPARK_", "HADOOP_"),
    *("PERL", "RUBY", "NPM_CONFIG_", "JULIA_", "LUA_"),
    # Git and SSH read dozens, and get new ones: programs, configuration, and whom they trust.
    *("GIT_", "SSH_"),
)
_OBEYED_NAMES = frozenset(
    {
        # Shells, and what they start.
        *("PATH", "ENV", "ZDOTDIR", "FPATH", "CDPATH", "IFS", "SHELL", "SHELLOPTS", "INPUTRC", "HISTFILE"),
        *("PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS3", "PS4", "VIRTUAL_ENV"),
        *("EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "VIMINIT", "GVIMINIT", "EXINIT", "EMACSLOADPATH"),
        *("SUDO_ASKPASS", "GNUPGHOME"),
        # What the C library does not obey in a privileged program either: https://man7.org/linux/man-pages/man8/ld.so.8.html
        *("GCONV_PATH", "GETCONF_DIR", "GLIBC_TUNABLES", "HOSTALIASES", "LOCALDOMAIN", "LOCPATH", "MALLOC_TRACE"),
        *("NIS_PATH", "NLSPATH", "RESOLV_HOST_CONF", "RES_OPTIONS", "TERMCAP", "TERMINFO", "TERMINFO_DIRS", "TZDIR"),
        # Interpreters and their libraries.
        *("NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE"),
        *("JAVA_HOME", "JAVA_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"),
        *("MAVEN_OPTS", "GRADLE_OPTS", "SBT_OPTS", "PHPRC", "PHP_INI_SCAN_DIR", "TCLLIBPATH"),
        *("R_HOME", "R_LIBS", "R_LIBS_SITE", "R_LIBS_USER", "R_PROFILE", "R_PROFILE_USER", "R_ENVIRON"),
        *("R_ENVIRON_USER", "R_DEFAULT_PACKAGES", "GTK_MODULES", "GTK_PATH", "QT_PLUGIN_PATH"),
        *("CUDA_INJECTION64_PATH", "OCL_ICD_VENDORS"),
        # Tools that start others as they are configured.
        *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "KUBECONFIG", "CURL_HOME"),
        # Whose servers are trusted, when something is installed.
        *("OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "SSL_CERT_DIR", "SSL_CERT_FILE"),
        *("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED"),
        *("AWS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
    }
)


def is_taken(variable: str) -> bool:
    return variable in TAKEN_NAMES or variable.startswith(TAKEN_PREFIX)


def is_obeyed(variable: str) -> bool:
    return variable.upper() in _OBEYED_NAMES or variable.upper().startswith(_OBEYED_PREFIXES)
