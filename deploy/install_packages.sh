#!/usr/bin/env bash
# Installs what holdfast is built and tested with, from Debian 12's own packages. Quick when all is there. Needs root, or
# sudo.
set -euo pipefail

packages=(
  # Compilers and build tools.
  build-essential cmake ninja-build ccache git
  # gRPC, Protocol Buffers, Abseil.
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  # LibTorch: the C++ client's tensors, and the peer of the benchmarks. gloo: another peer.
  libtorch-dev libgloo-dev
  # LibTorch multiplies matrices with whatever BLAS there is: the default one is eight times slower. One thread, as a
  # trainer process has.
  libopenblas0-serial
  # Metrics, logs, tests.
  prometheus-cpp-dev libspdlog-dev libgtest-dev libgmock-dev
  # A real Prometheus with promtool, for the tests; clang for formatting and static analysis.
  prometheus clang clang-format clang-tidy
  # Tools of the scripts.
  curl python3 python3-venv ca-certificates
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "install: all ${#packages[@]} packages are there"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install: needs root, or sudo, to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi

# Debian starts a service when its package comes. The tests run their own Prometheus; no other is wanted, now or at the
# next boot.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
install_missing() { apt install -y --no-install-recommends "${missing[@]}" </dev/null; }

echo "install: ${#missing[@]} of ${#packages[@]} packages are missing: ${missing[*]}"
# The lists that are there may do; a first update, or a newer one, is made when they don't.
if ! { apt-cache show "${missing[@]}" >/dev/null 2>&1 && install_missing; }; then
  echo "install: updating the package lists"
  apt update
  install_missing
fi
if [[ " ${missing[*]} " == *" prometheus "* ]] && command -v systemctl >/dev/null; then
  "${as_root[@]}" systemctl disable --quiet prometheus.service
fi
echo "install: done"
