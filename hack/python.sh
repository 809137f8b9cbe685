#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/python.sh
#
# Prints the path of a Python that has the client of Kubernetes, for the test of it with a
# view of the fleet. Where it is missing, root has Debian's installed.
set -euo pipefail

python=/usr/bin/python3
fail() { echo "python.sh: $*" >&2; exit 1; }
is_there() { "$python" -c 'import kubernetes' 2>/dev/null; }

if ! is_there; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "$python has no client of Kubernetes: install python3-kubernetes"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3-kubernetes; } >&2 ||
    fail "could not install python3-kubernetes"
  is_there || fail "python3-kubernetes is installed, and $python cannot import it"
fi
echo "$python"
