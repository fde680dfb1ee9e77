"""The component page of the demonstration: its samples of launches, waits, logs and sizes look as stored."""

from types import SimpleNamespace
from typing import get_args

from django.template.loader import render_to_string

from dashboard.components.views.component_samples import component_samples
from dashboard.components.views.components import STATUSES
from dashboard.components.views.frame_samples import frame_samples
from grid.diagnosis.launchfit import FitCode
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden


def shown() -> str:
    context = {**component_samples(MOMENT), "now": MOMENT, "viewer": SimpleNamespace(role="admin")}
    return render_to_string("components/fragments/component_waits.html", context)


def test_the_samples_look_as_stored() -> None:
    assert_golden("component-waits", shown())


def test_samples_of_table_and_log_frames_match_golden() -> None:
    request = SimpleNamespace(get_full_path=lambda: "/components/")
    rows = [("Churn notebook", STATUSES[0], 40), ("Nightly features", STATUSES[2], 96)]
    context = {**frame_samples(), "rows": rows, "request": request, "now": MOMENT}
    assert_golden("component-frame", render_to_string("components/fragments/component_frame.html", context))


def test_every_verdict_of_the_launch_card_has_a_sample() -> None:
    codes = {card.fit.code for _, card in component_samples(MOMENT)["fits"] if card}
    assert codes == set(get_args(FitCode))
