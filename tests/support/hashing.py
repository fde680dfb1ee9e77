"""A password hasher that counts, for tests of what is hashed when."""

from django.contrib.auth.hashers import MD5PasswordHasher

PATH = f"{__name__}.CountingHasher"


class CountingHasher(MD5PasswordHasher):
    count = 0

    def encode(self, password: str, salt: str) -> str:
        type(self).count += 1
        encoded: str = super().encode(password, salt)
        return encoded
