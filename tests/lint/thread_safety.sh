#!/usr/bin/env bash
# clang's thread-safety analysis over every source of the daemon and the client. Needs a configured build/.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(git ls-files 'common/*.cc' 'server/*.cc' 'client/*.cc' | grep -v '/kernels/')
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 1 clang++ -std=c++20 -fsyntax-only -Wthread-safety -Werror=thread-safety \
  -Wno-everything -DHOLDFAST_VERSION='"lint"' -I . -isystem build/proto -isystem /usr/include/torch/csrc/api/include
echo "thread safety: ${#files[@]} files, clean"
