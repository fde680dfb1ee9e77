"""A var/ as a run leaves it, made by the product's own functions but without starting a program."""

import json
import secrets
import shutil
import sqlite3
from pathlib import Path

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.kubelet.addresses import AddressBook
from grid.sandbox.kubelet.certificate import serving_context


def make_var(folder: Path) -> Path:
    """Databases with logs, as after a kill: both were copied while somebody had them open."""
    cluster, machine = folder / "cluster", folder / "cluster" / "machine"
    kept = (machine / name for name in ("nodes", "volumes", "repositories"))
    for place in (folder / "run", folder / "log", folder / "images", *kept):
        place.mkdir(parents=True)
    for name in ("run/lock", "run/processes.json", "kubeconfig", "log/web-server.log", "cluster/lock"):
        (folder / name).touch()
    (folder / "secret-key").write_text(secrets.token_urlsafe(48))
    login = {"username": "scientist", "password": "of-the-test", "role": "launches workspaces"}
    (folder / "demo-users.json").write_text(json.dumps([login], indent=2))
    (machine / "fleet.json").write_text(json.dumps({"nodes": {"default-abcde": "default"}, "boot": {"id": "1"}}))
    addresses = AddressBook(machine / "addresses.json")
    addresses.open()
    addresses.close()
    serving_context(machine)
    _with_log(folder / "grid.sqlite3")
    server = ApiServer(cluster, Tokens.load_or_make(cluster / "tokens.json"))
    _copy(cluster / "cluster.sqlite3")
    server.store.close()
    _put_back(cluster / "cluster.sqlite3")
    return folder


def _with_log(path: Path) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE django_migrations (id INTEGER PRIMARY KEY, name TEXT)")
    for number in range(200):
        database.execute("INSERT INTO django_migrations (name) VALUES (?)", (f"{number:04}_" + "x" * 200,))
    database.execute("PRAGMA wal_checkpoint(FULL)")
    database.execute("INSERT INTO django_migrations (name) VALUES ('the newest')")
    _copy(path)
    database.close()
    _put_back(path)


def _copy(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        shutil.copyfile(f"{path}{end}", f"{path}{end}.copy")


def _put_back(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}.copy").replace(f"{path}{end}")
