#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/browser.sh
#
# Makes sure that there is what the console's end-to-end test drives: Chromium, and in
# .fleetgate the package axe-core, which looks for what keeps people from using a page.
# Where Chromium or npm is missing, root has Debian's installed. Prints both paths.
set -euo pipefail
cd "$(dirname "$0")/.."

# The version and what its archive has to be: who changes one changes the other.
axe=axe-core@4.14.1
sum=1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5
archive=.fleetgate/${axe/@/-}.tgz

fail() { echo "browser.sh: $*" >&2; exit 1; }
is_ours() { [ -f "$archive" ] && echo "$sum  $archive" | sha512sum --check --status; }

missing=()
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
is_ours || command -v npm >/dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || fail "missing here, under Debian's names: ${missing[*]}"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } >&2 ||
    fail "cannot install ${missing[*]}"
fi
if ! is_ours; then
  mkdir -p .fleetgate
  npm pack "$axe" --silent --pack-destination .fleetgate >/dev/null || fail "cannot fetch $axe"
  is_ours || fail "$archive is not what $axe was when it was chosen: nothing of it is run"
fi
command -v chromium
echo "$PWD/$archive"
