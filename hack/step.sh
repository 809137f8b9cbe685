#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/step.sh LABEL COMMAND [ARG...]
#
# Runs a step that may take long: says what it is, repeats the elapsed time every
# 15 seconds, and says how it ended. Its output goes to a log of its own, and the
# end of that log is shown when the step fails.
set -uo pipefail

label=$1
shift
logs=${FLEETGATE_DIR:-.fleetgate}/logs
mkdir -p "$logs"
log=$logs/$(tr -cs 'a-zA-Z0-9\n' '-' <<<"$label").log

start=$SECONDS
printf '==> %s\n' "$label"
"$@" >"$log" 2>&1 &
pid=$!
trap 'kill "$pid" 2>/dev/null' INT TERM
(
  while sleep 15; do
    kill -0 "$pid" 2>/dev/null || exit
    printf '    %s ... %d s\n' "$label" $((SECONDS - start))
  done
) &
ticker=$!
wait "$pid"
code=$?
kill "$ticker" 2>/dev/null
wait "$ticker" 2>/dev/null

if [ "$code" -ne 0 ]; then
  printf '==> %s FAILED after %d s (exit %d). The end of %s:\n' "$label" $((SECONDS - start)) "$code" "$log" >&2
  tail -n 30 "$log" >&2
  exit "$code"
fi
printf '    %s: done in %d s\n' "$label" $((SECONDS - start))
