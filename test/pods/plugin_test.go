// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"bytes"
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"fleetgate.io/fleetgate/cmd/kubectl-fleetgate/app"
)

// joinedName is the member's cluster under the name by which the plugin has it join.
const joinedName = "member-2"

// fleetgate runs the plugin as the administrator of the hub, and returns what it prints and how
// it ends.
func fleetgate(ctx context.Context, args ...string) (string, int) {
	var out, beside bytes.Buffer
	code := app.Run(ctx, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &beside}, append(args, "--kubeconfig="+breakGlass(hub), "--cache-dir="+work))
	GinkgoWriter.Printf("$ kubectl fleetgate %s\n%s%s\n", strings.Join(args, " "), &beside, &out)
	return out.String(), code
}

// joinsByPlugin has the member's cluster, which has left, join again: token, agent, its Pod,
// registration.
func joinsByPlugin(ctx SpecContext) {
	out, code := fleetgate(ctx, "join", joinedName, "--member-kubeconfig="+breakGlass(member), "--timeout=3m")
	Expect(code).To(Equal(0), out)
	Expect(out).To(Equal("member " + joinedName + " has joined\n"))
	Eventually(func() (string, error) { return run(ctx, member, "kubectl get pods -n fleet-system") }).Should(MatchRegexp(`fleet-agent-\S+ +1/1 +Running`))
	Eventually(func() string { out, _ := fleetgate(ctx, "members", joinedName); return out }).Should(MatchRegexp(joinedName + ` +True +Yes`))
}

// broken are Deployments that only a kubelet can find fault with.
const broken = `
apiVersion: v1
kind: Namespace
metadata: {name: broken}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: broken, name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: IMAGE, command: [sh, -c, exit 3]}]}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: broken}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: broken}]
  policy: {placementType: PickFixed, clusterNames: [` + joinedName + `]}
`

// saysWhyPodsDoNotRun is the part of why's table for which there has to be a kubelet.
func saysWhyPodsDoNotRun(ctx SpecContext) {
	for _, breakage := range []struct{ name, image, reason, remedy string }{
		{"wrong-image", "example.org/missing:none", "ErrImagePull|ImagePullBackOff", "correct the image of Deployment broken/wrong-image on the hub, or give member member-2 access to the registry"},
		{"crash", shellImage, "CrashLoopBackOff|exited with", "check its log: kubectl fleetgate logs deployment.apps/crash -n broken --member member-2"},
	} {
		text := strings.NewReplacer("NAME", breakage.name, "IMAGE", breakage.image).Replace(broken)
		Expect(run(ctx, hub, "kubectl apply -f - <<EOF\n"+text+"EOF")).Error().NotTo(HaveOccurred())
		Eventually(func(g Gomega) {
			out, code := fleetgate(ctx, "why", "broken", "--member", joinedName)
			first, _, _ := strings.Cut(out, "\n")
			g.Expect(code).To(Equal(2), out)
			g.Expect(first).To(And(HavePrefix("Deployment broken/"+breakage.name+" on member member-2: not available: "), MatchRegexp(breakage.reason), HaveSuffix("Remedy: "+breakage.remedy)))
		}).Should(Succeed())
		Expect(run(ctx, hub, "kubectl delete deployment -n broken "+breakage.name)).Error().NotTo(HaveOccurred())
	}
	Expect(run(ctx, hub, "kubectl delete clusterresourceplacement broken --timeout=2m")).Error().NotTo(HaveOccurred())
	out, code := fleetgate(ctx, "leave", joinedName)
	Expect(code).To(Equal(0), out)
}
