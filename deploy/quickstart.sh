#!/usr/bin/env bash
# Installs what is missing, builds, trains a small language model through holdfast, and shows the result. See --help.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'EOF'
deploy/quickstart.sh [options]: from nothing to a trained model.

Starts holdfastd with 4 ranks on this machine, trains a character-level transformer on the GPL as 4 worker processes,
kills one of them with SIGKILL on the way, and samples text from the trained weights and from their EMA.

  --no-install   leaves packages alone
  --keep         keeps the run directory (log, loss curve) and says where it is
  --help         this text

Exit status: 0 if the loss fell, the kill was survived, and the daemon drained cleanly.
EOF
}

install=1 keep=0
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=0 ;;
    --keep) keep=1 ;;
    --help) usage; exit 0 ;;
    *) echo "quickstart: unknown option '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

say() { printf '\n== %s\n' "$*"; }

[ "$install" -eq 0 ] || { say "Packages"; deploy/install_packages.sh; }

say "Building in build/"
cmake -G Ninja -S . -B build -DCMAKE_BUILD_TYPE=Release >/dev/null
ninja -C build holdfastd holdfastctl holdfast_text

run=$(mktemp -d "${TMPDIR:-/tmp}/holdfast.XXXXXX")
daemon=
finish() {
  [ -z "$daemon" ] || kill -KILL "$daemon" 2>/dev/null || true
  [ "$keep" -eq 1 ] || rm -rf "$run"
}
trap finish EXIT
trap 'exit 130' INT TERM

say "Starting holdfastd with 4 ranks"
build/bin/holdfastd --worker_socket="$run/worker.sock" --num_ranks=4 --operator_address=127.0.0.1:0 \
  --metrics_address=127.0.0.1:0 --ready_file="$run/ready.json" 2>"$run/holdfastd.log" &
daemon=$!
# The file appears when the daemon serves; a daemon that ends instead is the other way out.
until [ -e "$run/ready.json" ]; do
  kill -0 "$daemon" 2>/dev/null || { cat "$run/holdfastd.log" >&2; echo "quickstart: holdfastd did not start" >&2; exit 1; }
  sleep 0.05
done
metrics=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["metrics_address"])' "$run/ready.json")
echo "worker socket $run/worker.sock, metrics http://$metrics/metrics, log $run/holdfastd.log"

say "Training"
curve=build/quickstart_loss.svg
build/bin/holdfast_text --daemon="$run/worker.sock" --ranks=4 --svg="$curve"

say "What the daemon says"
build/bin/holdfastctl --address="unix:$run/worker.sock" status
echo
curl -sS "http://$metrics/metrics" |
  grep -E '^holdfast_(step|epoch|gather_(hits|misses)_total|collective_bytes_total|aborts_total|leases|ema_lag_steps)' || true

say "Draining holdfastd (SIGTERM)"
kill -TERM "$daemon"
wait "$daemon" || { echo "quickstart: holdfastd did not drain cleanly" >&2; cat "$run/holdfastd.log" >&2; exit 1; }
daemon=
tail -n 2 "$run/holdfastd.log"

say "Done"
echo "Loss curve: $curve"
[ "$keep" -eq 0 ] || echo "Run directory: $run"
