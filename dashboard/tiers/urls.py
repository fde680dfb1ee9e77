"""The URLs of this room's pages."""

from dashboard.administration.urls import catalogue
from dashboard.shell.routes import path
from dashboard.tiers.edited import TIERS, tier_check
from dashboard.tiers.views import rush

urlpatterns = [
    *catalogue(TIERS),
    path("tiers/new/check/", tier_check, name="tier-new-check"),
    path("tiers/<name:id>/check/", tier_check, name="tier-check"),
    path("rush/", rush.rush, name="rush"),
    path("rush/<id:id>/remove/", rush.rush_remove, name="rush-remove"),
]
