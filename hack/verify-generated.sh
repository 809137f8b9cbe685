#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/verify-generated.sh
#
# Runs hack/generate.sh on a copy of what it reads and writes, and fails if that
# changes anything.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/hack" "$copy/pkg"
cp go.mod go.sum go.tools.mod go.tools.sum "$copy"
cp -R hack/generate.sh hack/boilerplate.go.txt hack/crdgen "$copy/hack"
cp -R pkg/apis "$copy/pkg"
mkdir "$copy/pkg/apiserver"
cp -R pkg/apiserver/openapi "$copy/pkg/apiserver"

# What a generator no longer writes must not survive in the copy.
find "$copy/pkg" -name 'zz_generated.*' -delete
rm -f "$copy"/pkg/apis/crds/*.yaml
"$copy/hack/generate.sh"

if ! diff -ru pkg/apis "$copy/pkg/apis" || ! diff -ru pkg/apiserver/openapi "$copy/pkg/apiserver/openapi"; then
  echo "Generated files are not up to date. Run: make generate" >&2
  exit 1
fi
