"""Who shared what with whom, in words."""

from grid.core.reasons import Reader, Sentence, Values
from grid.core.translation import gettext as _
from grid.core.wording import listed


def _shared(values: Values, reader: Reader) -> str:
    if "port" in values:
        return _port_shared(values)
    sentence = _("{by} shared it with {added} and stopped sharing it with {gone}.")
    if not values["gone"]:
        sentence = _("{by} shared it with {added}.")
    elif not values["added"]:
        sentence = _("{by} stopped sharing it with {gone}.")
    names = {which: listed(values[which]) for which in ("added", "gone") if values[which]}
    return sentence.format(by=values["by"], **names)


def _port_shared(values: Values) -> str:
    by, port, name = values["by"], values["port"], values["name"]
    if not values["names"]:
        return _("{by} stopped sharing its port {port} ({name}).", by=by, port=port, name=name)
    return _("{by} shared its port {port} ({name}) with {names}.", by=by, port=port, name=name, names=values["names"])


SENTENCES: dict[str, Sentence] = {"Shared": _shared}
