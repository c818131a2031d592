#!/usr/bin/env python3
"""clang's view of the sources that gcc built: its thread-safety analysis, or clang-tidy.

  tests/lint/clang_checks.py thread-safety|tidy [--build DIRECTORY] [--changed-since COMMIT] [--jobs N]

Reads the flags of each source in common/, server/ and client/ from DIRECTORY/compile_commands.json (default: build),
so DIRECTORY must have been built. With --changed-since only the sources that differ from COMMIT are looked at.
Exit status: 0 if there is nothing to say.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# gcc's flags that clang 14 does not know.
GCC_ONLY = ("-fmax-errors", "-fno-gnu-unique")


def sources(build, changed_since):
    """(path, flags) of each source, in the order of their paths."""
    changed = None
    if changed_since:
        names = subprocess.run(["git", "diff", "--name-only", changed_since, "--"], cwd=ROOT, check=True,
                               capture_output=True, text=True).stdout
        changed = {str(ROOT / name) for name in names.splitlines()}
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        if not path.endswith(".cc") or (changed is not None and path not in changed):
            continue
        if not path.startswith(tuple(f"{ROOT}/{folder}/" for folder in ("common", "server", "client"))):
            continue
        flags = shlex.split(entry["command"])
        # ccache and the compiler come first.
        while flags and not flags[0].startswith("-"):
            flags.pop(0)
        skip_next, kept = False, []
        for flag in flags:
            if skip_next or flag in ("-c", path, entry["file"]) or flag.startswith(GCC_ONLY):
                skip_next = False
            elif flag == "-o":
                skip_next = True
            else:
                kept.append(flag)
        found[path] = kept
    return sorted(found.items())


def command(check, path, flags):
    if check == "thread-safety":
        return ["clang++", *flags, "-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", path]
    return ["clang-tidy", "--quiet", "--warnings-as-errors=*", path, "--", *flags, "-Wno-unknown-warning-option"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["thread-safety", "tidy"])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--changed-since")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if not (options.build / "compile_commands.json").exists():
        sys.exit(f"{options.check}: {options.build} has no compile_commands.json; build there first (tests/run.sh)")

    def run(item):
        path, flags = item
        return path, subprocess.run(command(options.check, path, flags), cwd=ROOT, capture_output=True, text=True)

    files = sources(options.build, options.changed_since)
    # clang 14 does not compile LibTorch 1.13's headers as C++20. What is built against them holds no locks of its own.
    readable = [(path, flags) for path, flags in files if not any("/torch/" in flag for flag in flags)]
    skipped, files = len(files) - len(readable), readable
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, result in pool.map(run, files):
            if result.returncode != 0:
                failed += 1
                print(f"{os.path.relpath(path, ROOT)}:\n{result.stdout}{result.stderr}", flush=True)
    print(f"{options.check}: {len(files)} files, {f'{failed} with faults' if failed else 'clean'}; "
          f"{skipped} that use LibTorch left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
