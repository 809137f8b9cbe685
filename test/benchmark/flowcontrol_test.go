// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"strings"
	"testing"

	"fleetgate.io/fleetgate/test/fleet"
)

const (
	// agentsLevel is how the chart calls the priority level of agents, of a release "fleet".
	agentsLevel = "fleetgate-" + gatewayNamespace + "-fleet-gateway-agents"
	// chartAccount is as whom the chart has a gateway come, fleetUser as whom those of a fleet do.
	chartAccount = "{kind: ServiceAccount, serviceAccount: {namespace: " + gatewayNamespace + ", name: fleet-gateway}}"
	fleetUser    = "{kind: User, user: {name: 'fleetgate:gateway'}}"
)

// shareOut has the hub's API server share itself out as it does where the chart has installed
// the gateway, whose flags have to name agentsLevel: the gateway and its Leases do not wait for
// agents, nor for others.
func shareOut(b *testing.B, f *fleet.Fleet) {
	b.Helper()
	made, err := f.Run(b.Context(), "helm", "", "template", "fleet", "../../charts/gateway", "--namespace="+gatewayNamespace,
		"--set=hubURL=https://hub.example:6443", "--show-only=templates/flowcontrol.yaml")
	if err != nil {
		b.Fatal(err)
	}
	if !strings.Contains(made, chartAccount) || !strings.Contains(made, "name: "+agentsLevel+"\n") {
		b.Fatalf("the chart does not name %s and %s any more:\n%s", chartAccount, agentsLevel, made)
	}
	if out, err := f.Kubectl(b.Context(), f.HubKubeconfig(), strings.ReplaceAll(made, chartAccount, fleetUser), "apply", "-f", "-"); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}
