#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: arm64.sh BINARY...
#
# Runs binaries that were built for arm64, as far as --version and --help go, under qemu-user of Debian,
# which it installs if it is missing and may.
set -euo pipefail

fail() { echo "arm64.sh: $*" >&2; exit 1; }

qemu=qemu-aarch64-static
if ! command -v "$qemu" >/dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "$qemu is missing: install qemu-user-static"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends qemu-user-static; } >&2 ||
    fail "could not install qemu-user-static"
fi
for binary in "$@"; do
  case $(od -An -tx1 -j18 -N2 "$binary" | tr -d ' ') in
  b700) ;;
  *) fail "$binary is not for arm64" ;;
  esac
  version=$("$qemu" "$binary" --version) || fail "$binary --version failed"
  help=$("$qemu" "$binary" --help) || fail "$binary --help failed"
  [ -n "$version" ] && [ -n "$help" ] || fail "$binary says nothing"
  echo "$binary: $version, and $(grep -c . <<<"$help") lines of help"
done
