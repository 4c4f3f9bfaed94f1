#!/usr/bin/env bash
# Generates the committed code of libs/contracts from proto/. `make proto` runs it; a test checks that nothing drifted.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="${1:-libs/contracts/src}"
python="${PYTHON:-.venv/bin/python}"
PATH="$(dirname "$python"):$PATH" "$python" -m grpc_tools.protoc -Iproto \
  --python_out="$out" --mypy_out="quiet:$out" --grpc_python_out="$out" --mypy_grpc_out="quiet:$out" \
  $(find proto -name '*.proto' | sort)
find "$out/tidegate" -name '*_pb2_grpc.py*' | while read -r file; do
  grep -qs 'service ' "proto/${file#"$out"/}" 2>/dev/null || grep -q 'Stub' "$file" || rm "$file"
done
