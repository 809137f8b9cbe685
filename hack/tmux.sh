#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/tmux.sh
#
# Prints the path of tmux, the terminal in which tests run programs that people look at.
# Where it is missing, root has Debian's installed.
set -euo pipefail

fail() { echo "tmux.sh: $*" >&2; exit 1; }

if ! command -v tmux >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "tmux is missing: install it"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends tmux; } >&2 ||
    fail "could not install tmux"
fi
command -v tmux
