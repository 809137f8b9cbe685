#!/usr/bin/env bash
# Copyright The fleetgate Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Usage: hack/kind.sh
#
# Makes a hub and a member with kind, loads the images that `make images` built, and
# installs both charts as docs/getting-started/install.md says. It can be run again. Needs kind, kubectl
# and what kind needs: Docker, Podman or nerdctl.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.fleetgate/bin:$PATH

for program in kind kubectl helm; do
  command -v "$program" >/dev/null || { echo "There is no $program in PATH: install it first" >&2; exit 1; }
done

hub() { kubectl --context=kind-fleetgate-hub "$@"; }

# deploy CLUSTER RELEASE CHART FLAG... installs or upgrades.
deploy() {
  helm upgrade --install "$2" "charts/$3" --kube-context="kind-fleetgate-$1" --namespace=fleet-system --create-namespace --wait "${@:4}"
}

for cluster in hub member; do
  kind get clusters 2>/dev/null | grep --quiet --line-regexp "fleetgate-$cluster" || kind create cluster --name="fleetgate-$cluster"
done
arch=$(go env GOARCH)
kind load image-archive --name=fleetgate-hub ".fleetgate/images/gateway-$arch.tar"
kind load image-archive --name=fleetgate-member ".fleetgate/images/agent-$arch.tar"

# Nodes of both clusters are in one network, and a node's address is in its API server's certificate.
address=$(hub get nodes --output='jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}')
deploy hub gateway gateway --set=hubURL="https://$address:6443"

hub apply --filename=- <<EOF
apiVersion: v1
kind: Namespace
metadata: {name: clusters}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: ClusterRegistrationToken
metadata: {name: kind, namespace: clusters, annotations: {fleetgate.io/approval: auto}}
spec: {ttl: 1h}
EOF
until hub --namespace=clusters get secret kind >/dev/null 2>&1; do sleep 1; done
values=$(mktemp)
trap 'rm -f "$values"' EXIT
hub --namespace=clusters get secret kind --output='jsonpath={.data.values}' | base64 --decode >"$values"
deploy member fleet-agent agent --values="$values" --set-string=labels.env=dev
hub get memberclusters

echo 'Remove all of it: kind delete clusters fleetgate-hub fleetgate-member'
