#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/generate.sh
#
# Writes all generated code of the checkout it lies in: DeepCopy methods of the
# API types, the CRDs, and OpenAPI of the groups that the gateway serves itself.
set -euo pipefail
cd "$(dirname "$0")/.."

tool() { go tool -modfile=go.tools.mod "$@"; }
# The API types are a module of their own, and controller-gen reads one module.
controller_gen=$(tool -n controller-gen)
controller_gen() { (cd pkg/apis && "$controller_gen" "$@"); }
module=$(go list -m)
header=hack/boilerplate.go.txt

# A group is served by CRDs or by the gateway's API server, never by both.
aggregated=(pkg/apis/gateway/v1alpha1 pkg/apis/tunnel/v1alpha1)
types=(pkg/apis/*/v[0-9]*/ pkg/apis/ocm/*/v[0-9]*/)

deepcopy_paths=() crd_paths=() openapi_packages=()
for dir in "${types[@]%/}"; do
  deepcopy_paths+=("paths=./${dir#pkg/apis/}")
  case " ${aggregated[*]} " in
  *" $dir "*) openapi_packages+=("$module/$dir") ;;
  *) crd_paths+=("paths=./${dir#pkg/apis/}") ;;
  esac
done

echo "DeepCopy methods"
controller_gen "object:headerFile=../../$header" "${deepcopy_paths[@]}"

echo "CRDs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
controller_gen crd "${crd_paths[@]}" "output:crd:dir=$scratch"
go run ./hack/crdgen "$scratch" pkg/apis/crds

echo "OpenAPI"
served=pkg/apiserver/openapi/internal/served
tool openapi-gen --go-header-file "$header" --report-filename "$scratch/openapi-report" \
  --output-pkg "$module/$served" --output-dir "$served" \
  --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
  "${openapi_packages[@]}"
