#!/usr/bin/env python3
"""The README's tables of fields and metrics must be those of the code. --fix writes them anew.

The meaning of a field is its comment in proto/holdfast/v1/config.proto, that of a metric its help text in
server/metrics/metrics.cc.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def comment_before(text, position):
    """The // lines that end right before `position`, as one line."""
    lines = []
    for line in reversed(text[:position].rstrip(" ").splitlines()):
        if not line.strip().startswith("//"):
            break
        lines.append(line.strip().removeprefix("//").strip())
    return " ".join(reversed(lines))


def table(heading, rows):
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def config_table():
    text = (ROOT / "proto/holdfast/v1/config.proto").read_text()
    enums = {}
    for name, body in re.findall(r"^enum (\w+) \{(.*?)^\}", text, re.M | re.S):
        values = [(value[1], comment_before(body, value.start())) for value in re.finditer(r"^  (\w+) = \d+;", body, re.M)]
        prefix = values[0][0].removesuffix("UNSPECIFIED")
        enums[name] = ", ".join(value.removeprefix(prefix) for value, comment in values[1:]
                                if "Not in this version" not in comment)
    start = text.index("message DaemonConfig {")
    rows = []
    for field in re.finditer(r"^  ([\w.]+) (\w+) = \d+;", text[start:], re.M):
        kind, name = field.groups()
        kind = {"google.protobuf.Duration": "duration"}.get(kind, kind)
        rows.append([f"`{name}`", enums.get(kind, kind), comment_before(text, start + field.start())])
    return table(["field", "type or values", "meaning"], rows)


def metrics_table():
    text = (ROOT / "server/metrics/metrics.cc").read_text()
    found = re.findall(r'Build(Counter|Gauge|Histogram)\(\)\s*\.Name\("(\w+)"\)\s*\.Help\(((?:\s*"[^"]*")+)\)', text)
    if len(found) != len(re.findall(r"\.Name\(", text)):
        sys.exit("readme: server/metrics/metrics.cc has a metric that this script can't read")
    return table(["series", "type", "meaning"],
                 [[f"`{name}`", kind.lower(), "".join(re.findall('"([^"]*)"', text))] for kind, name, text in sorted(
                     found, key=lambda metric: metric[1])])


def main():
    readme = ROOT / "README.md"
    before = after = readme.read_text()
    for name, content in (("config", config_table()), ("metrics", metrics_table())):
        begin, end = f"<!-- {name} table: begin -->\n", f"<!-- {name} table: end -->\n"
        if before.count(begin) != 1 or before.count(end) != 1:
            sys.exit(f"readme: README.md must have the marks of the {name} table once each")
        head, rest = after.split(begin)
        after = head + begin + content + end + rest.split(end)[1]
    if sys.argv[1:] == ["--fix"]:
        readme.write_text(after)
    elif before != after:
        sys.exit("readme: a table of README.md is not that of the code; tests/lint/readme.py --fix writes it anew")
    print("readme: tables are those of the code")


if __name__ == "__main__":
    main()
