"""Form fields for structured values that people type as lines (arguments, key=value pairs, tolerations), and for rows to choose from;
and the layout of forms in titled sections, some of them collapsed until needed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BoundField

from grid.core.errors import Problem
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _
from grid.models.environment import VARIABLE_NAME, Framework

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = Expression(rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_NAME}")
_LABEL_VALUE = Expression(rf"({_NAME})?")
_VERSION = Expression(r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,39}")
_LINE_END = RepeatedExpression(r"\r\n|\r|\n")
MAXIMUM_TEXT = 1_000_000  # characters of a field with many lines; what it says has bounds of its own
_WIDE_WIDGETS = (forms.Textarea, forms.CheckboxSelectMultiple)
_SHOWN = 5  # problems of lines that are told at once


def add_problems(form: forms.BaseForm, problems: Iterable[Problem]) -> None:
    """Add each problem at its field, or to the whole form where it has no such field."""
    for problem in problems:
        form.add_error(problem.path if problem.path in form.fields else None, problem.message)


def wrong_length(text: str, longest: int) -> None:
    """Raise ValidationError when a typed text is longer."""
    if len(text) > longest:
        raise ValidationError(
            _("Use at most {longest:,} characters; these are {length:,}.", longest=longest, length=len(text)),
            code="too_long",
        )


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    def __init__(self, *, rows: int = 3, **kwargs: Any) -> None:
        super().__init__(**{"widget": forms.Textarea(attrs={"rows": rows, "spellcheck": "false"}), **kwargs})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list):
            return value
        return [line.strip() for line in self.typed_lines(value) if line.strip()]

    def typed_lines(self, value: Any) -> list[str]:
        """Return the lines as they were typed, empty ones too."""
        text = str(value or "")
        wrong_length(text, MAXIMUM_TEXT)
        return _LINE_END.split(text)


class PairsField(LinesField):
    """A mapping of text to text, one `name=value` a line. `kind` says which names and values Kubernetes accepts. A variable's value stays
    as it was typed, with blanks at its ends."""

    def __init__(self, *, kind: str, **kwargs: Any) -> None:
        self.kind = kind
        super().__init__(**kwargs)

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name}={text}" for name, text in sorted(value.items())) if isinstance(value, dict) else value

    def to_python(self, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        pairs: dict[str, str] = {}
        problems = []
        for line in filter(str.strip, self.typed_lines(value)):
            name, separator, text = line.partition("=")
            name, text = name.strip(), text if self.kind == "variable" else text.strip()
            problem = _pair_problem(self.kind, name, separator, text, line.strip())
            if not problem and name in pairs:
                problem = _("“{name}” is given twice.", name=name)
            if problem:
                problems.append(problem)
            pairs[name] = text
        if problems:
            raise ValidationError(problems[:_SHOWN])
        return pairs


class FrameworksField(LinesField):
    """Frameworks with their versions, one a line, as `dask 2026.8.0`; "=" between them is fine too, because pip writes "=="."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return "\n".join(f"{name} {version}" for name, version in sorted(value.items()))

    def to_python(self, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        versions: dict[str, str] = {}
        problems = []
        for line in super().to_python(value):
            name, _unused, version = (part.strip() for part in line.replace("=", " ").lower().partition(" "))
            if name not in Framework.values:
                known = ", ".join(Framework.values)
                problems.append(_("“{name}” is not a framework; there are {frameworks}.", name=name, frameworks=known))
            elif name in versions:
                problems.append(_("“{name}” is given twice.", name=name))
            elif not _VERSION.fullmatch(version):
                problems.append(_("“{line}” does not name one version; write for example dask 2026.8.0.", line=line))
            versions[name] = version
        if problems:
            raise ValidationError(problems)
        return versions


class TolerationsField(LinesField):
    """Tolerations as `kubectl taint` writes taints, one a line: `key`, `key:Effect`, `key=value` or `key=value:Effect`."""

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, list) or not all(isinstance(toleration, dict) for toleration in value):
            return value
        return "\n".join(map(_toleration_line, value))

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list):
            return value
        return list(_parse_tolerations(super().to_python(value)))


def _pair_problem(kind: str, name: str, separator: str, text: str, line: str) -> str:
    if not separator:
        return _("“{line}” has no “=”; write name=value.", line=line)
    if kind == "variable":
        return "" if VARIABLE_NAME.fullmatch(name) else _("“{name}” is not a name for a variable.", name=name)
    if not _KEY.fullmatch(name):
        return _("“{name}” is not a valid key; write for example team or example.org/team.", name=name)
    if kind == "label" and not _LABEL_VALUE.fullmatch(text):
        return _(
            "“{text}” is not a valid label value: up to 63 letters, digits, dashes, dots and underscores.", text=text
        )
    return ""


def _parse_tolerations(lines: list[str]) -> Iterator[dict[str, str]]:
    for line in lines:
        head, _unused, effect = line.partition(":")
        key, separator, value = (part.strip() for part in head.partition("="))
        effect = effect.strip()
        if not _KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise ValidationError(
                _("“{line}” is not a toleration; write for example nvidia.com/gpu=present:NoSchedule.", line=line)
            )
        if effect and effect not in _EFFECTS:
            known = ", ".join(_EFFECTS)
            raise ValidationError(
                _("“{effect}” is not an effect; choose {effects}, or none for all.", effect=effect, effects=known)
            )
        toleration = {"key": key, "operator": "Equal" if separator else "Exists"}
        if separator:
            toleration["value"] = value
        if effect:
            toleration["effect"] = effect
        yield toleration


def _toleration_line(toleration: dict[str, str]) -> str:
    value = f"={toleration.get('value', '')}" if toleration.get("operator", "Equal") == "Equal" else ""
    effect = f":{toleration['effect']}" if toleration.get("effect") else ""
    return f"{toleration.get('key', '')}{value}{effect}"


class RowsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Any number of a table's rows. Django hands the ids that it was sent to SQLite, which takes none beyond 64 bits."""

    def __init__(self, queryset: Any, **kwargs: Any) -> None:
        super().__init__(queryset, required=False, widget=forms.CheckboxSelectMultiple, **kwargs)

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:
            raise ValidationError(_("Choose from those that are listed."), code="invalid_choice") from None


class Section(NamedTuple):
    """A section with its `fields` in order; a collapsible one (`is_closed`) starts open when one of its fields is filled in or wrong."""

    title: str
    purpose: str
    fields: tuple[str, ...]
    is_closed: bool = False


class LaidOutField(NamedTuple):
    """A field in a section; `unit` is its number's unit, and a wide field takes the section's whole width."""

    bound: BoundField
    unit: str
    is_wide: bool


class LaidOutSection(NamedTuple):
    title: str
    purpose: str
    fields: tuple[LaidOutField, ...]
    is_closed: bool
    is_open: bool

    @property
    def names(self) -> list[str]:
        return [field.bound.name for field in self.fields]


def lay_out(
    form: forms.BaseForm, sections: Collection[Section], *, units: Mapping[str, str], wide: Collection[str]
) -> list[LaidOutSection]:
    """Return the sections with the form's fields; fields that the form does not have (any more) are left out."""
    laid_out = []
    for section in sections:
        fields = [form[name] for name in section.fields if name in form.fields]
        widths = (field.name in wide or isinstance(field.field.widget, _WIDE_WIDGETS) for field in fields)
        shown = tuple(
            LaidOutField(field, units.get(field.name, ""), is_wide)
            for field, is_wide in zip(fields, widths, strict=True)
        )
        is_open = any(field.errors or field.value() for field in fields)
        laid_out.append(LaidOutSection(section.title, section.purpose, shown, section.is_closed, is_open))
    return laid_out
