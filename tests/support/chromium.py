"""The Chromium that drives the pages in tests and for pictures: where it is, and how it is started."""

import os
import shutil

MISSING = "no Chromium here: install the package chromium-headless-shell or chromium, or set GRID_CHROMIUM to a browser's path"
# The shell has the pages alone and no windows, which cost a third of the time of tests.
_PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")
# Of a command line Chromium heeds only the last such list, and Playwright gives one, which is repeated here.
_NOT_PLAYWRIGHTS = (
    *(
        "AvoidUnnecessaryBeforeUnloadCheckSync",
        "DestroyProfileOnBrowserClose",
        "HttpsUpgrades",
        "LensOverlay",
        "MediaRouter",
    ),
    *(
        "HttpsFirstBalancedModeAutoEnable",
        "PaintHolding",
        "ThirdPartyStoragePartitioning",
        "OptimizationHints",
        "AimEnabled",
    ),
    *("AvoidCorsURLLoaderRestartOnRedirect", "NetworkTimeServiceQuerying", "PreconnectToSearch"),
)
# Of each window's address bar, which nobody sees: two pages of the browser's own, as dear as one of ours.
_NOT_OURS = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join((*_NOT_PLAYWRIGHTS, *_NOT_OURS))}",
]


def find_chromium() -> str | None:
    """Return the path of the program; None without one."""
    return os.environ.get("GRID_CHROMIUM") or next(filter(None, map(shutil.which, _PROGRAMS)), None)
