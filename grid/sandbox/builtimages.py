"""Images that people have had built: requirements on top of another image. Their recipes are files beside the images, so every process with
the same folder knows them, also after a restart."""

import hashlib
from pathlib import Path

import msgspec

from grid.core.decoding import prepared
from grid.core.regexes import Expression, escape
from grid.core.requirementlines import BUILT_HERE, parse_requirements
from grid.sandbox.images import BUILT_IN, Image, ImageCatalogue

_NAME = Expression(escape(BUILT_HERE) + r"[a-z0-9][a-z0-9-]{0,60}:[a-z0-9][a-z0-9.-]{0,60}")
_FOLDER = "recipes"
_DEEPEST = 20


class CannotBuild(Exception):
    """The image cannot be built as asked; the message says why."""


class Recipe(msgspec.Struct, frozen=True):
    """What an image is made of; `base` is the name of another."""

    name: str
    base: str
    requirements: tuple[str, ...]


class BuildableCatalogue(ImageCatalogue):
    """The catalogue together with what was built in this folder of images."""

    def __init__(self, directory: Path, known: ImageCatalogue | None = None) -> None:
        super().__init__((known or ImageCatalogue(BUILT_IN)).images())
        self._folder = directory / _FOLDER

    def find(self, name: str) -> Image | None:
        return super().find(name) or (self._built(name, _DEEPEST) if name.startswith(BUILT_HERE) else None)

    def images(self) -> list[Image]:
        built = (self.find(recipe.name) for recipe in self._recipes())
        return [*super().images(), *(image for image in built if image is not None)]

    def add(self, name: str, base: str, requirements: tuple[str, ...]) -> Image:
        """Store the recipe and return the image, which is still to be made. Raise CannotBuild."""
        if not _NAME.fullmatch(name):
            raise CannotBuild(f"“{name[:100]}” is no name for an image that is built here.")
        _, problems = parse_requirements("\n".join(requirements))
        if problems:
            raise CannotBuild(problems[0].message)
        if self.find(base) is None:
            raise CannotBuild(f"Its base, the image “{base[:200]}”, is not in the catalogue of this cluster.")
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._file(name)
        fresh = file.with_suffix(".unfinished")
        fresh.write_bytes(msgspec.json.encode(Recipe(name, base, requirements)))
        fresh.replace(file)
        image = self.find(name)
        if image is None:
            raise CannotBuild("It stands on too many others; build it on an image.")
        return image

    def _built(self, name: str, depth: int) -> Image | None:
        if "@" in name:  # by its digest, as the kubelet tells it
            return next((image for image in self.images() if image.id == name), None)
        recipe = self._read(name)
        if recipe is None or depth == 0:
            return None
        base = super().find(recipe.base) or self._built(recipe.base, depth - 1)
        if base is None:
            return None
        about = f"Built here on {recipe.base}"
        return Image(recipe.name, recipe.requirements, about, base.command, base.needs, base=base)

    def _recipes(self) -> list[Recipe]:
        recipes = (_recipe_in(file) for file in sorted(self._folder.glob("*.json")))
        return [recipe for recipe in recipes if recipe is not None]

    def _read(self, name: str) -> Recipe | None:
        recipe = _recipe_in(self._file(name))
        return recipe if recipe is not None and recipe.name == name else None

    def _file(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _recipe_in(file: Path) -> Recipe | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=prepared(Recipe))
    except (OSError, msgspec.DecodeError):
        return None
