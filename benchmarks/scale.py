"""The foundation at size, on an embedded cluster with a population, each with a table of its own.

    python -m benchmarks.scale sync|live|views|pages|abandoned|beside|browser [--nodes N] [--pods N] [--churn R] ...

`--help` after a name says what it measures, its options and their defaults.
"""

import argparse

from benchmarks import abandoned, beside, browser, firstbyte, firstsync, live, views

COMMANDS = {
    "sync": firstsync,
    "live": live,
    "views": views,
    "pages": firstbyte,
    "abandoned": abandoned,
    "beside": beside,
    "browser": browser,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        raw = argparse.RawDescriptionHelpFormatter
        module.add_arguments(commands.add_parser(name, description=module.__doc__, formatter_class=raw))
    options = parser.parse_args()
    COMMANDS[options.command].main(options)


if __name__ == "__main__":
    main()
