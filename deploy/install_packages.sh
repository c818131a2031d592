#!/usr/bin/env bash
# Installs what holdfast is built and tested with, from Debian 12's own packages. Quick, and quiet, when all is there.
set -euo pipefail

packages=(
  # Compilers and build tools.
  build-essential cmake ninja-build ccache pkg-config
  # gRPC, Protocol Buffers, Abseil.
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  # LibTorch: the C++ client's tensors, and the peer of the benchmarks. gloo: collectives.
  libtorch-dev libgloo-dev
  # LibTorch multiplies matrices with whatever BLAS there is: the default one is eight times slower. One thread, as a
  # trainer process has.
  libopenblas0-serial
  # Metrics, logs, tests.
  prometheus-cpp-dev libspdlog-dev libgtest-dev libgmock-dev libbenchmark-dev
  # What the tests run: a real Prometheus with promtool; formatting and static analysis.
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
echo "install: ${missing[*]}"
# Debian starts a service when its package comes; the tests bring their own Prometheus, and no other is wanted.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
