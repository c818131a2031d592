#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Quick when nothing changed. --help tells more.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'EOF'
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
EOF
}

sanitize=0 label="" filter="" jobs=$(nproc) install=1 build=1
while [ $# -gt 0 ]; do
  case "$1" in
    --sanitize) sanitize=1 ;;
    --label) label=${2:?--label needs a label}; shift ;;
    --filter) filter=${2:?--filter needs a regular expression}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --no-install) install=0 ;;
    --no-build) build=0 ;;
    --help) usage; exit 0 ;;
    *) echo "tests/run.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

say() { printf '\n== %s\n' "$*"; }

[ "$install" -eq 0 ] || { say "Packages"; deploy/install_packages.sh; }

# build_and_test DIRECTORY SANITIZERS: one build of everything, and its tests.
build_and_test() {
  local directory=$1 sanitizers=$2
  if [ "$build" -eq 1 ]; then
    say "Building in $directory/${sanitizers:+ with -fsanitize=$sanitizers}"
    cmake -G Ninja -S . -B "$directory" -DCMAKE_BUILD_TYPE=Release -DHOLDFAST_SANITIZE="$sanitizers" >"$directory.configure.log" 2>&1 ||
      { cat "$directory.configure.log"; exit 1; }
    rm -f "$directory.configure.log"
    ninja -C "$directory" -j "$jobs"
  fi
  say "Testing in $directory/"
  local arguments=(--test-dir "$directory" --output-on-failure --no-tests=error)
  [ -z "$label" ] || arguments+=(-L "^$label\$")
  [ -z "$filter" ] || arguments+=(-R "$filter")
  ctest "${arguments[@]}" || failed+=("$directory")
}

failed=()
start=$SECONDS
build_and_test build ""
if [ "$sanitize" -eq 1 ]; then
  build_and_test build-asan address,undefined
  build_and_test build-tsan thread
fi

say "Summary"
if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L >/dev/null 2>&1; then
  echo "No GPU here: tests with the label gpu were skipped."
fi
if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED in: ${failed[*]} (after $((SECONDS - start)) s)"
  exit 1
fi
echo "All tests passed (in $((SECONDS - start)) s)."
