#!/usr/bin/env python3
"""Prints the code blocks of a Markdown file that have an info string: blocks.py README.md "cpp trainer"."""
import pathlib
import re
import sys


def blocks(markdown, info):
    """The text of all fenced blocks with this info string, one after the other. At least one must be there."""
    found = re.findall(rf"^```{re.escape(info)}\n(.*?)^```$", markdown, re.M | re.S)
    if not found:
        sys.exit(f"there is no block '{info}'")
    return "".join(found)


if __name__ == "__main__":
    sys.stdout.write(blocks(pathlib.Path(sys.argv[1]).read_text(), sys.argv[2]))
