"""Mount paths in texts: found where they stand by themselves, nowhere else."""

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.kubelet.mounts import Mounts

_NAMES = st.text("abcxyz0189_.-", min_size=1, max_size=6).filter(lambda text: text not in (".", ".."))
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
_BEFORE = st.sampled_from(["", " ", "=", ":", ",", "'", '"', "(", "--dir=", "a b ", ";", "|", "<", ">"])
_AFTER = st.sampled_from(["", " ", ":", ",", "'", '"', ")", "/", "/x", "/x/y.txt", ";", "|"])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/data", "/real/d"),
        ("/data/x.csv", "/real/d/x.csv"),
        ("--root=/mnt/project:/data", "--root=/real/p:/real/d"),
        ("cd /mnt/project && python main.py > '/data/out'", "cd /real/p && python main.py > '/real/d/out'"),
        ("/mnt/project/sub/x", "/real/s/x"),
        ("/mnt/project/subway", "/real/p/subway"),
        ("/data2 /data-old /data.bak /mnt/data", "/data2 /data-old /data.bak /mnt/data"),
        (
            "http://127.0.0.1:8888/data s/data/x/ ~/data ${HOME}/data",
            "http://127.0.0.1:8888/data s/data/x/ ~/data ${HOME}/data",
        ),
    ],
)
def test_path_is_rewritten_only_where_it_stands_alone(text: str, wanted: str) -> None:
    places = {"/data/": "/real/d", "/mnt/project": "/real/p", "/mnt/project/sub": "/real/s"}
    assert Mounts(places).rewrite(text) == wanted


@given(path=_PATHS, before=_BEFORE, after=_AFTER)
def test_a_path_between_separators_is_always_found(path: str, before: str, after: str) -> None:
    assert Mounts({path: "/R"}).rewrite(before + path + after) == before + "/R" + after
