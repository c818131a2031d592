#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Quick when nothing changed. --help tells more.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
tests/run.sh [options]: installs what is missing, builds, and runs the tests.

  --sanitize        also builds and runs the suite under AddressSanitizer + UndefinedBehaviorSanitizer (build-asan/)
                    and under ThreadSanitizer (build-tsan/)
  --label LABEL     only tests with this label: unit, integration or gpu
  --filter REGEX    only tests whose name matches
  --jobs N          parallel compilations (default: one a core)
  --no-install      leaves packages alone
  --no-build        runs what is built already
  --help            this text

Labels: unit (one process), integration (real daemons, real sockets, several processes), gpu (needs a GPU; skipped, and
said so, where there is none).
TEXT
}

wrong() { echo "tests/run.sh: $*" >&2; usage >&2; exit 2; }

sanitize=0 only_label="" filter="" jobs=$(nproc) install=1 build=1
while [ $# -gt 0 ]; do
  case "$1" in
    --label | --filter | --jobs) [ $# -ge 2 ] || wrong "$1 needs a value" ;;&
    --sanitize) sanitize=1 ;;
    --label) only_label=$2; shift ;;
    --filter) filter=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --no-install) install=0 ;;
    --no-build) build=0 ;;
    --help) usage; exit 0 ;;
    *) wrong "unknown option '$1'" ;;
  esac
  shift
done
[[ "$only_label" =~ ^(|unit|integration|gpu)$ ]] || wrong "--label is '$only_label'; it must be unit, integration or gpu"
[[ "$jobs" =~ ^[1-9][0-9]*$ ]] || wrong "--jobs is '$jobs'; it must be a number, 1 or more"

say() { printf '\n== %s\n' "$*"; }
has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; }

start=$SECONDS
summary=()
failed=0

# count DIRECTORY [LABELS]: how many tests there are; LABELS is a regular expression.
count() {
  ctest --test-dir "$1" -N ${2:+-L "$2"} ${filter:+-R "$filter"} | sed -n 's/^Total Tests: //p'
}

fail() {
  summary+=("FAILED   $*")
  failed=1
}

# test_in DIRECTORY: runs what is wanted; ctest shows each test as it ends.
test_in() {
  local directory=$1 wanted="^(unit|integration|gpu)\$" began=$SECONDS number
  [ -z "$filter$only_label" ] && [ "$(count "$directory")" -ne "$(count "$directory" "$wanted")" ] &&
    fail "$directory: there are tests with none of the labels unit, integration and gpu"
  [ -z "$only_label" ] || wanted="^$only_label\$"
  if ! has_gpu; then
    number=$(count "$directory" '^gpu$')
    [[ "$only_label" =~ ^(|gpu)$ ]] && summary+=("skipped  $directory: $number tests with the label gpu, as there is no GPU here")
    [ "$only_label" != gpu ] || return 0
    wanted=${wanted/|gpu/}
  fi
  number=$(count "$directory" "$wanted")
  # A filter that matches nothing is a mistake, not a success.
  [ "$number" -gt 0 ] || { fail "$directory: no test was run"; return 0; }
  say "Testing in $directory/: $number tests"
  if ctest --test-dir "$directory" --output-on-failure -L "$wanted" ${filter:+-R "$filter"}; then
    summary+=("passed   $directory: $number tests in $((SECONDS - began)) s")
  else
    fail "$directory: see above; again: ctest --test-dir $directory --rerun-failed --output-on-failure"
  fi
}

# build_and_test DIRECTORY SANITIZERS: one build of everything, and its tests.
build_and_test() {
  local directory=$1 sanitizers=$2
  if [ "$build" -eq 1 ]; then
    say "Building in $directory/${sanitizers:+ with -fsanitize=$sanitizers}"
    mkdir -p "$directory"
    cmake -G Ninja -S . -B "$directory" -DCMAKE_BUILD_TYPE=Release -DHOLDFAST_SANITIZE="$sanitizers" \
      >"$directory/configure.log" 2>&1 || { cat "$directory/configure.log"; exit 1; }
    ninja -C "$directory" -j "$jobs"
  fi
  test_in "$directory"
}

[ "$install" -eq 0 ] || { say "Packages"; deploy/install_packages.sh; }
build_and_test build ""
if [ "$sanitize" -eq 1 ]; then
  build_and_test build-asan address,undefined
  build_and_test build-tsan thread
fi

say "Summary, after $((SECONDS - start)) s"
printf '%s\n' "${summary[@]}"
[ "$failed" -eq 0 ] && echo "All tests that were run have passed." || { echo "There were failures."; exit 1; }
