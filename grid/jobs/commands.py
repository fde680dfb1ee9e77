"""What a job's command says before it runs; pure.

Nothing here knows the shell's grammar. What is not understood is left alone, and then the job is named after its environment;
of several scripts the first one counts, in the order of the text.
"""

from grid.core.regexes import Expression

# Folders and endings are left out; `train.py.bak` and `result.csv` are no scripts.
_BEFORE, _AFTER = r"(?:^|[\s/\"'=])", r"(?:$|[\s\"';&|)])"
_ENDINGS = r"\.(?:py|ipynb|sh|R|r|Rmd|qmd|jl|scala|sql|js|ts|rb|pl|jar)"
_SCRIPT = Expression(rf"{_BEFORE}([\pL\pN_][\pL\pN_.-]{{0,99}}){_ENDINGS}{_AFTER}")
_MODULE = Expression(r"(?:^|\s)python[0-9.]*\s+-m\s+(?:[\pL\pN_]+\.)*([\pL\pN_]+)")


def script_name(command: str) -> str:
    """Return the name of the first script in the command, without its folder and ending: "train" for `python src/train.py`, or of the
    module that `python -m` runs; "" without any."""
    script = _SCRIPT.search(command) or _MODULE.search(command)
    return script[1] if script is not None else ""
