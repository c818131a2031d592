#!/usr/bin/env bash
# Installs what is missing, builds, trains a small language model through holdfast, and shows the result. See --help.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
deploy/quickstart.sh [options]: from nothing to a trained model.

Starts holdfastd with 4 ranks on this machine, trains a character-level transformer on the GPL as 4 worker processes,
kills one of them with SIGKILL on the way, and samples text from the trained weights and from their EMA.

  --no-install   leaves packages alone
  --no-build     runs what is built already
  --keep         keeps the run directory (the daemon's log and addresses) and says where it is
  --help         this text

Exit status: 0 if the loss fell, the kill was survived, and the daemon drained cleanly.
TEXT
}

install=1 build=1 keep=0
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=0 ;;
    --no-build) build=0 ;;
    --keep) keep=1 ;;
    --help) usage; exit 0 ;;
    *) echo "quickstart: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

say() { printf '\n== %s\n' "$*"; }

[ "$install" -eq 0 ] || { say "Packages"; deploy/install_packages.sh; }

if [ "$build" -eq 1 ]; then
  say "Building in build/"
  mkdir -p build
  cmake -G Ninja -S . -B build -DCMAKE_BUILD_TYPE=Release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
  ninja -C build holdfastd holdfastctl holdfast_text
fi

run=$(mktemp -d "${TMPDIR:-/tmp}/holdfast.XXXXXX")
daemon=
fail() {
  echo "quickstart: $*; the daemon's log:" >&2
  cat "$run/holdfastd.log" >&2
  exit 1
}
finish() {
  [ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null || true
  [ "$keep" -eq 1 ] || rm -rf "$run"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start=$SECONDS
say "Starting holdfastd with 4 ranks"
build/bin/holdfastd --worker_socket="$run/worker.sock" --num_ranks=4 --metrics_address=127.0.0.1:0 \
  --ready_file="$run/ready.json" 2>"$run/holdfastd.log" &
daemon=$!
# The file appears when the daemon serves; a daemon that ends instead is the other way out.
until [ -e "$run/ready.json" ]; do
  kill -0 "$daemon" 2>/dev/null || { daemon=; fail "holdfastd did not start"; }
  sleep 0.05
done
metrics=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["metrics_address"])' "$run/ready.json")
echo "It serves on $run/worker.sock; metrics are on http://$metrics/metrics"

say "Training as 4 processes; one is killed half way"
curve=build/quickstart_loss.svg
build/bin/holdfast_text --daemon="$run/worker.sock" --ranks=4 --svg="$curve" || fail "the training failed"

say "holdfastctl status"
build/bin/holdfastctl status --address="unix:$run/worker.sock"

say "Some of the metrics"
curl -sS "http://$metrics/metrics" |
  grep -E '^holdfast_(step|epoch|ema_lag_steps|gather_(hits|misses)_total|(collective|ema|pulled)_bytes_total|aborts_total)'

say "Draining holdfastd (SIGTERM)"
kill -TERM "$daemon"
status=0
wait "$daemon" || status=$?
daemon=
[ "$status" -eq 0 ] || fail "holdfastd ended with exit status $status"
tail -n 2 "$run/holdfastd.log"

say "Done, in $((SECONDS - start)) s after the build"
echo "Loss curve: $curve"
[ "$keep" -eq 0 ] || echo "Run directory: $run"
