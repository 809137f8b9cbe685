// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// keptInGit is what docs/how-to/restore.md says to keep of members in Git.
func (l *launched) keptInGit(ctx context.Context) string {
	GinkgoHelper()
	type member struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	var list struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Items      []member `json:"items"`
	}
	Expect(json.Unmarshal([]byte(l.hub(ctx, "get", "memberclusters", "--output=json")), &list)).To(Succeed())
	Expect(list.Items).To(HaveLen(len(members())))
	for i := range list.Items {
		key := list.Items[i].Metadata.Annotations["fleetgate.io/registered-key"]
		Expect(key).NotTo(BeEmpty())
		list.Items[i].Metadata.Annotations = map[string]string{"fleetgate.io/registered-key": key}
	}
	text, err := json.Marshal(list)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// asAdministrator applies as an administrator who installs a hub.
func (l *launched) asAdministrator(ctx context.Context, manifest string, args ...string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := l.fleet.Kubectl(ctx, l.breakGlass("hub"), manifest, append([]string{"apply"}, args...)...)
		return err
	}).Should(Succeed())
}

// letAgentsRead applies the grant of docs/how-to/restore.md.
const letAgentsRead = `
{apiVersion: v1, kind: Namespace, metadata: {name: fleet-returning}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: returning, namespace: fleet-returning}
rules: [{apiGroups: [fleet.cattle.io], resources: [clusterregistrations], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: returning, namespace: fleet-returning}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: returning}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:unauthenticated"}]
`

// versionsOnMembers returns UIDs and resourceVersions of placed objects.
func (l *launched) versionsOnMembers(ctx context.Context) map[string]string {
	all := map[string]string{}
	for _, member := range members() {
		for name, object := range map[string][]string{
			"namespace": {"namespace", "shop"}, "configmap": {"configmap", "web", "--namespace=shop"}, "deployment": {"deployment", "web", "--namespace=shop"},
			"binding": {"clusterrolebinding", "fleetgate-admins"}, "brought": {"configmap", "lasting"}, "account": account("cluster-gateway"),
		} {
			version := ".metadata.uid}/{.metadata.resourceVersion"
			if name == "account" {
				version = ".metadata.uid" // it notes for which ManagedServiceAccount it is
			}
			all[member+" "+name] = l.on(ctx, member, version, object...)()
		}
		all[member+" pods"] = l.on(ctx, member, ".items[*].metadata.uid", "pods", "--namespace=shop")()
	}
	return all
}

// buildAnew deletes everything on the hub, rebuilds it from Git, and expects the fleet to continue
// unchanged.
func (l *launched) buildAnew(ctx context.Context) {
	GinkgoHelper()
	hub, err := env.Load(filepath.Join(l.dir, "hub"))
	Expect(err).NotTo(HaveOccurred())
	l.bring(ctx, broughtBefore)
	for _, member := range members() {
		Eventually(l.on(ctx, member, ".data.text", "configmap", "lasting")).Should(Equal("as ever"))
	}
	inGit := l.keptInGit(ctx)
	former := l.hub(ctx, "get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")
	agents := map[string]int{}
	for _, member := range members() {
		agents[member] = l.process(member + "-agent").PID()
	}
	before := l.versionsOnMembers(ctx)
	seen := l.watchDeletions(ctx)

	gateway := l.process("gateway")
	Expect(gateway.Stop(ctx)).To(Succeed())
	Expect(hub.LetAnonymousIn()).To(Succeed())
	Expect(hub.Lose(ctx)).To(Succeed())
	rights := (&fleet.Fleet{Options: fleet.Options{OCM: true}}).Rights()
	l.asAdministrator(ctx, rights, "--filename=-")
	Expect(gateway.Start(ctx)).To(Succeed())
	l.asAdministrator(ctx, "", "--filename="+l.fleet.Example("admins.yaml"))
	Expect(l.hub(ctx, "get", "namespace", "kube-system", "--output=jsonpath={.metadata.uid}")).NotTo(Equal(former))

	By("applying everything that is kept in Git")
	l.apply(ctx, inGit)
	l.asAdministrator(ctx, letAgentsRead, "--filename=-")
	l.asAdministrator(ctx, "", "--filename="+l.fleet.Example("shop.yaml"))
	for _, member := range members() {
		Consistently(l.condition(ctx, member, "Joined")).ShouldNot(HavePrefix("True"), "the member is not readmitted yet")
	}

	By("readmitting all members")
	l.hub(ctx, "annotate", "memberclusters", "--all", "fleetgate.io/readmit=true")
	for _, member := range members() {
		Eventually(l.condition(ctx, member, "Joined")).Should(HavePrefix("True"))
	}
	l.bring(ctx, broughtBefore)
	Eventually(func() string {
		return l.hub(ctx, "get", "clusterresourceplacements", `--output=jsonpath={.items[*].status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].status}`)
	}).Should(Equal("True True"))
	for _, member := range members() {
		Eventually(l.workCondition(ctx, member, "lasting", "Applied")).Should(HavePrefix("True"))
		Expect(l.process(member+"-agent").PID()).To(Equal(agents[member]), "the agent was not restarted")
	}
	Eventually(func() error { return l.fleet.AwaitAnswers(ctx, settle) }).Should(Succeed())
	Expect(l.versionsOnMembers(ctx)).To(Equal(before), "nothing was re-created or written")
	Expect(seen.all()).To(BeEmpty(), "deletions on members")
	AddReportEntry("what a member says of the former hub", l.hub(ctx, "get", "membercluster", "member-1", `--output=jsonpath={.metadata.annotations.fleetgate\.io/former-hub}`))
	Expect(l.hub(ctx, "get", "membercluster", "member-1", `--output=jsonpath={.metadata.annotations.fleetgate\.io/former-hub}`)).To(Equal(former))
	Expect(l.hub(ctx, "get", "memberclusters", `--output=jsonpath={.items[*].metadata.annotations.fleetgate\.io/readmit}`)).To(BeEmpty())

	By("changing a placed object")
	l.hub(ctx, "patch", "configmap", "web", "--namespace=shop", "--type=merge", `--patch={"data":{"greeting":"of the rebuilt hub"}}`)
	for _, member := range members() {
		Eventually(l.on(ctx, member, ".data.greeting", "configmap", "web", "--namespace=shop")).Should(Equal("of the rebuilt hub"))
	}
}
