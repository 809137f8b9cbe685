// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"strings"
	"testing"

	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	// agentsLevel is the chart's priority level of agents in a release "fleet".
	agentsLevel = "fleetgate-" + gatewayNamespace + "-fleet-gateway-agents"
	// chartAccount is the gateway's user in the chart, fleetUser the one in a test fleet.
	chartAccount = "{kind: ServiceAccount, serviceAccount: {namespace: " + gatewayNamespace + ", name: fleet-gateway}}"
	fleetUser    = "{kind: User, user: {name: 'fleetgate:gateway'}}"
)

// shareOut installs the chart's FlowSchemas on the hub; the gateway's flags must name agentsLevel.
// Requests of the gateway and its Leases then do not wait for agents or others.
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
