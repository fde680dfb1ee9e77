"""What models share: validators of quantities, times and names that become part of Kubernetes names, a base with a name, and a lookup."""

import math
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import IntegerField, Model
from django.db.models.lookups import In

from grid.core.quantity import parse_quantity
from grid.core.regexes import Expression
from grid.core.translation import gettext as _


class Named(Model):
    """A model whose objects are shown by their name."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name  # type: ignore[attr-defined,no-any-return]


validate_slug_name = RegexValidator(
    r"\A[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?\Z",
    _("Use 1 to 40 lower-case letters, digits and dashes; start and end with a letter or a digit."),
)

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names
validate_object_name = RegexValidator(
    r"\A[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\Z",
    _("Use lower-case letters, digits, dashes and dots, as Kubernetes' names have them."),
)

# A key of a Kubernetes Secret (1 to 253 of these), which is the file's name in the pod; shorter. Kubernetes refuses "." and whatever begins
# with "..", as a key and as a path in a volume.
validate_file_name = RegexValidator(
    r"\A(?!\.\Z|\.\.)[A-Za-z0-9._-]{1,100}\Z",
    _("Use letters, digits, dots, dashes and underscores, and not two dots first, such as service-account.json."),
)

# Printable ASCII, as URLs are written; browsers read "//host" and "/\\host" as another host, and dots as a way out of the path.
validate_url_path = RegexValidator(
    r"\A(?!//)(?![^?#]*/\.\.?(/|\?|#|\Z))/[!-\[\]-~]*\Z",
    _("Begin with one slash, without a host, such as /lab or /?folder=/mnt/project; no spaces, no backslashes."),
)

# https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources: a name of a domain, which is not
# Kubernetes' own, a slash and a name.
_EXTENDED_RESOURCE = Expression(
    r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*/[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)
# The grammar of references of images, https://pkg.go.dev/github.com/distribution/reference: host and port, path, tag and digest.
_IMAGE = Expression(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9+._-]+:[0-9a-fA-F]{32,128})?"
)


def validate_device_resource(name: str) -> None:
    """Raise ValidationError unless `name` can be an extended resource of Kubernetes, which device plugins offer."""
    domain = name.partition("/")[0]
    is_own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io") or name.startswith("requests.")
    if is_own or _EXTENDED_RESOURCE.fullmatch(name) is None:
        sentence = _(
            "Write the name of a device resource with its domain, as a node's capacity has it, such as nvidia.com/gpu."
        )
        raise ValidationError(sentence, code="resource")


def validate_image(name: str) -> None:
    """Raise ValidationError unless `name` can be an image of a registry."""
    if "://" in name:
        sentence = _("Write the image without https:// or the like, such as registry.example.com/lab:4.")
        raise ValidationError(sentence, code="image")
    if _IMAGE.fullmatch(name) is None:
        sentence = _(
            "This is no name of an image. Write it in lower-case letters with its tag, such as registry.example.com/lab:4."
        )
        raise ValidationError(sentence, code="image")


validate_time = RegexValidator(r"\A([01][0-9]|2[0-3]):[0-5][0-9]\Z", _("Write hours and minutes, such as 08:00."))


def validate_time_zone(name: str) -> None:
    """Raise ValidationError unless `name` is a time zone that this machine knows."""
    try:
        ZoneInfo(name)
    except (LookupError, OSError, ValueError) as error:
        sentence = _("There is no time zone “{name}”. Write a name such as Europe/Berlin.", name=name)
        raise ValidationError(sentence, code="zone") from error


LONGEST_IDLE_MINUTES = 30 * 24 * 60
LONGEST_LIFETIME_HOURS = 365 * 24
_MOST = (2**63 - 1) // 1000  # cores are stored in thousandths, in 64 bits


def validate_quantity(text: str) -> None:
    """Raise ValidationError unless `text` is a positive Kubernetes quantity such as 500m, 2, 512Mi or 4Gi."""
    try:
        value = parse_quantity(text)
    except ValueError as error:
        raise ValidationError(str(error), code="quantity") from error
    if value <= 0:
        raise ValidationError(_("Must be more than zero."), code="positive")
    if value > _MOST:
        raise ValidationError(_("That is more than any machine has; check the unit."), code="too_large")


@IntegerField.register_lookup
class IntegerIn(In):
    """Leaves out numbers that no row can have, as Django's `exact` and `lt` of integers do: SQLite's driver and PostgreSQL refuse them
    with an error, and a form's choices may be any number that somebody sends."""

    def process_rhs(self, compiler: Any, connection: BaseDatabaseWrapper) -> Any:
        if self.rhs_is_direct_value():
            least, most = connection.ops.integer_field_range(self.lhs.output_field.get_internal_type())
            least, most = -math.inf if least is None else least, math.inf if most is None else most
            self.rhs = [value for value in self.rhs if not isinstance(value, int) or least <= value <= most]
        return super().process_rhs(compiler, connection)
