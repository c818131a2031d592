#!/usr/bin/env bash
# buf lint over proto/. buf comes from PyPI into an environment of its own, made once.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=1.75.0
environment=${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/buf-$version
if [ ! -x "$environment/bin/buf" ]; then
  echo "proto: installing buf $version"
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/pip" --quiet --disable-pip-version-check install "buf-bin==$version"
fi
(cd proto && "$environment/bin/buf" lint)
echo "proto: $(git ls-files 'proto/*.proto' | wc -l) files, clean"
