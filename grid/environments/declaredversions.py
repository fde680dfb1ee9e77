"""Reads what environments declare of their versions: from the environment, and from what its current revision is built of."""

from collections.abc import Mapping, Sequence

from grid.clusters.frameworkversions import Declared, declared, pair_sentences
from grid.environments.packageindex import packages_of
from grid.models import Environment, EnvironmentRevision

_DEEPEST = 10  # revisions on top of one another; a longer chain is read as far as that


def declared_by(environments: Sequence[Environment]) -> list[Declared]:
    """Return what each declares, in their order, with a query for each level of revisions."""
    chains = _chains(
        {environment.pk: environment.current_revision for environment in environments if environment.current_revision}
    )
    return [_declared(environment, chains.get(environment.pk, [])) for environment in environments]


def version_mismatch(workspace: Environment, cluster: Environment, framework: str) -> str:
    """Return a warning about launching both together, as sentences; "" when nothing speaks against it."""
    client, server = declared_by([workspace, cluster])
    return " ".join(pair_sentences(client, server, framework))


def _declared(environment: Environment, chain: Sequence[EnvironmentRevision]) -> Declared:
    packages: dict[str, str] = {}
    for revision in reversed(chain):  # what is installed last is what is there
        # With a marker (";") it may not be installed.
        lines = [line for line in revision.requirements.splitlines() if ";" not in line]
        packages |= {package.name: package.version for package in packages_of(lines, "")}
    # The name of a built image is ours, and says nothing of what is in it.
    images = [revision.image for revision in chain if revision.base_id is None] if chain else [environment.image]
    return declared(
        environment.name, environment.frameworks, images=images, variables=environment.variables, packages=packages
    )


def _chains(numbers: Mapping[str, int]) -> dict[str, list[EnvironmentRevision]]:
    """Return each environment's current revision and those below it, from the top."""
    stored = EnvironmentRevision.objects.only("environment", "number", "image", "requirements", "base")
    current = stored.filter(environment__in=numbers, number__in=set(numbers.values()))
    chains = {
        revision.environment_id: [revision]
        for revision in current
        if revision.number == numbers[revision.environment_id]
    }
    for _ in range(_DEEPEST):
        below = stored.in_bulk([chain[-1].base_id for chain in chains.values() if chain[-1].base_id is not None])
        if not below:
            break
        for chain in chains.values():
            if (base := chain[-1].base_id) in below:
                chain.append(below[base])
    return chains
