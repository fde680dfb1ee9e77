"""Encrypts what the database keeps and nobody may read there.

The keys are texts of the settings. The first encrypts; all decrypt, so that a key can be replaced without losing anything: put the new one
first, run `manage.py encrypt_again`, remove the old one. A text becomes a key by HKDF (RFC 5869), so that its length and alphabet are free
and the same text may also sign sessions.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from grid.core.errors import GridError
from grid.core.translation import gettext as _

_PURPOSE = b"compute-grid stored secrets"


class Undecryptable(GridError):
    """What was encrypted cannot be decrypted: its key is no longer among the settings', or it was changed."""


def encrypt(text: str) -> str:
    return _cipher_of(tuple(settings.ENCRYPTION_KEYS)).encrypt(text.encode()).decode()


def decrypt(ciphertext: str) -> str:
    """Return the text. Raise Undecryptable."""
    try:
        return _cipher_of(tuple(settings.ENCRYPTION_KEYS)).decrypt(ciphertext.encode()).decode()
    except InvalidToken as error:
        raise Undecryptable(_("It was encrypted with a key that is no longer in the settings.")) from error


def is_encrypted_with(key: str, ciphertext: str) -> bool:
    """Return whether this key, which need not be one of the settings', decrypts it."""
    try:
        _cipher_of((key,)).decrypt(ciphertext.encode())
    except InvalidToken:
        return False
    return True


def encrypt_again(ciphertext: str) -> str:
    """Return the same text encrypted with the first key. Raise Undecryptable."""
    return encrypt(decrypt(ciphertext))


@lru_cache(maxsize=8)
def _cipher_of(keys: tuple[str, ...]) -> MultiFernet:
    derived = [HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(text.encode()) for text in keys]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in derived])
