"""The component page of the demonstration: its samples of launches, waits, logs, sizes, tables and frames."""

from types import SimpleNamespace
from typing import get_args

from django.template.loader import render_to_string

from dashboard.components.views.component_samples import component_samples
from dashboard.components.views.components import STATUSES, frame_samples
from grid.diagnosis.launchfit import FitCode
from tests.support.builders import MOMENT


def test_samples_are_rendered_with_all_their_parts() -> None:
    """How each part looks is stored beside the tests of its own room."""
    request = SimpleNamespace(get_full_path=lambda: "/components/")
    rows = [("Churn notebook", STATUSES[0], 40), ("Nightly features", STATUSES[2], 96)]
    known = {"now": MOMENT, "viewer": SimpleNamespace(role="admin"), "request": request, "rows": rows}
    waits = render_to_string("components/fragments/component_waits.html", {**component_samples(MOMENT), **known})
    frame = render_to_string("components/fragments/component_frame.html", {**frame_samples(), **known})
    assert 'aria-label="starts-now"' in waits
    assert "Churn notebook" in frame


def test_every_verdict_of_the_launch_card_has_a_sample() -> None:
    codes = {card.fit.code for _, card in component_samples(MOMENT)["fits"] if card}
    assert codes == set(get_args(FitCode))
