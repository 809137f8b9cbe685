// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members_test makes one cluster a member of two real hubs, each with its own gateway and
// an agent on the member.
package members_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

const (
	// member is the cluster's name on both hubs.
	member = "member-1"
	// hubName is the hub name of the second hub's agent.
	hubName = "second"
)

func TestMembers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "Members of several hubs", Label("integration", "members"))
}

// startHubs starts two hubs. The cluster is a member of the first.
func startHubs(ctx context.Context) (first, second *hub) {
	GinkgoHelper()
	return startHub(ctx, member), startHub(ctx)
}

func startHub(ctx context.Context, members ...string) *hub {
	GinkgoHelper()
	return &hub{Fleet: program.Fleet(ctx, fleet.Options{Members: members})}
}

// hub is one of the two hubs with its administrator's kubeconfig.
type hub struct {
	*fleet.Fleet
	// agents were started in addition to those of the fleet.
	agents []*env.Process
}

// kubectl runs on the hub and fails the spec on an error.
func (h *hub) kubectl(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	out, err := h.Kubectl(ctx, h.HubKubeconfig(), input, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// asks runs kubectl for Eventually and returns its output or its error.
func (h *hub) asks(ctx context.Context, args ...string) func() (string, error) {
	return func() (string, error) { return h.Kubectl(ctx, h.HubKubeconfig(), "", args...) }
}

// place creates a namespace with a ConfigMap, and a placement of both.
func (h *hub) place(ctx context.Context, placement, namespace, value string) {
	GinkgoHelper()
	h.placeBy(ctx, placement, namespace, value, "{placementType: PickAll}", "")
}

// placeBy is like place, with a policy and further manifests in between.
func (h *hub) placeBy(ctx context.Context, placement, namespace, value, policy, further string) {
	GinkgoHelper()
	h.kubectl(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[2]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: %[2]s}
data: {from: %[3]s}
---%[5]s
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: %[1]s}
spec:
  resourceSelectors:
  - {group: "", version: v1, kind: Namespace, name: %[2]s}
  policy: %[4]s
`, placement, namespace, value, policy, further), "apply", "--filename=-")
}

// conditionOf returns the status of one condition of the placement.
func (h *hub) conditionOf(ctx context.Context, placement, condition string) func() (string, error) {
	return h.asks(ctx, "get", "clusterresourceplacement", placement,
		`--output=jsonpath={.status.conditions[?(@.type=="ClusterResourcePlacement`+condition+`")].status}`)
}

// whyNotApplied returns the manifest conditions of the placement's Work.
func (h *hub) whyNotApplied(ctx context.Context, placement string) func() (string, error) {
	return h.asks(ctx, "get", "work", placement+"-work", "--namespace="+clusterv1beta1.MemberNamespace(member),
		`--output=jsonpath={.status.conditions[?(@.type=="Applied")].message}`)
}

// uid is the UID of the hub's namespace kube-system.
func (h *hub) uid(ctx context.Context) string {
	GinkgoHelper()
	return h.kubectl(ctx, "", "get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
}

// agentOn registers a cluster of another fleet under the same name, with an agent with these
// additional flags.
func (h *hub) agentOn(ctx context.Context, of *fleet.Member, flags ...string) *env.Process {
	GinkgoHelper()
	h.kubectl(ctx, `
apiVersion: v1
kind: Namespace
metadata: {name: clusters}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: ClusterRegistrationToken
metadata: {name: token, namespace: clusters, annotations: {fleetgate.io/approval: auto}}
spec: {ttl: 1h}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: Cluster
metadata: {name: `+member+`, namespace: clusters}
spec: {clientID: the-cluster}
`, "apply", "--filename=-")
	values := filepath.Join(h.Dir, "values.yaml")
	Eventually(func() error {
		text, err := h.asks(ctx, "get", "secret", "token", "--namespace=clusters", "--output=go-template={{.data.values | base64decode}}")()
		if err != nil {
			return err
		}
		return os.WriteFile(values, []byte(text), 0o600)
	}).Should(Succeed())
	kubeconfig, err := of.Cluster.Kubeconfig(fleet.AgentUser, "system:masters")
	Expect(err).NotTo(HaveOccurred())
	ports, err := env.FreePorts(1)
	Expect(err).NotTo(HaveOccurred())
	process, err := env.NewProcess(env.ProcessOptions{
		Name: "agent", Dir: h.Dir, Path: filepath.Join(h.BinDir, "agent"),
		Args: append([]string{
			"--member-kubeconfig=" + kubeconfig, "--bootstrap-file=" + values, "--client-id=the-cluster", "--v=2",
			"--metrics-bind-address=0", fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[0]),
		}, flags...),
	})
	Expect(err).NotTo(HaveOccurred())
	h.agents = append(h.agents, process)
	Expect(process.Start(ctx)).To(Succeed())
	Eventually(h.asks(ctx, "get", "membercluster", member, `--output=jsonpath={.status.conditions[?(@.type=="Joined")].status}`)).Should(Equal("True"))
	return process
}

// keepLogs copies the logs of a failed spec's hubs and member to where CI collects them.
var _ = artifacts.OnFailure(func() []*env.Cluster {
	if firstHub == nil {
		return nil
	}
	return []*env.Cluster{firstHub.Hub, firstHub.Members[0].Cluster}
})
