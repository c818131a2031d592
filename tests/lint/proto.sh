#!/usr/bin/env bash
# buf lint over proto/.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/lint/pip_command.sh
buf=$(pip_command buf-bin 1.75.0 buf)
(cd proto && "$buf" lint && "$buf" format --diff --exit-code)
echo "proto: $(git ls-files 'proto/*.proto' | wc -l) files, clean"
