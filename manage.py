#!/usr/bin/env python3
"""Elowen's commands. `python3 manage.py up` starts everything, `python3 manage.py test` tests it."""

import sys


def main() -> None:
    from elowen.bootstrap import ensure_packages

    ensure_packages(sys.argv)  # does not return when it has to continue in another Python

    from elowen.launch import run

    run(sys.argv)


if __name__ == "__main__":
    main()
