// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// roundTripper adapts a function to http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// wellKnown requests the well-known status of a Deployment without Pods.
func wellKnown(namespace string) workv1.ManifestWorkSpec {
	return configured("apps", "deployments", namespace, "*", func(o *workv1.ManifestConfigOption) {
		o.FeedbackRules = []workv1.FeedbackRule{{Type: workv1.FeedbackWellKnownStatus}}
	})
}

const integer = `={"type":"Integer","integer":`

var _ = Describe("Feedback", func() {
	It("follows the object by watch and has the time of the last change", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "well-known", wellKnown(ns), build.DeploymentText(ns, "web", "web"))
		Eventually(values(ctx, "well-known", 0)).Should(HaveExactElements("ReadyReplicas"+integer+"2}", "Replicas"+integer+"2}", "AvailableReplicas"+integer+"2}"))
		Expect(of(ctx, "well-known", 0)(Default)).To(HaveExactElements(applied, available, synced))

		updateWork(ctx, "well-known", func(work *workv1.ManifestWork) {
			work.Spec.Workload.Manifests = manifests(strings.Replace(build.DeploymentText(ns, "web", "web"), "replicas: 2", "replicas: 3", 1))
		})
		Eventually(values(ctx, "well-known", 0)).Should(ContainElement("ReadyReplicas" + integer + "3}"))
	})

	It("reports well-known values of DaemonSets and Jobs and values of cluster-scoped objects", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		spec := workv1.ManifestWorkSpec{}
		for _, of := range []workv1.ResourceIdentifier{{Group: "apps", Resource: "daemonsets", Namespace: "*", Name: "ever*"}, {Group: "batch", Resource: "jobs", Namespace: ns, Name: "*"}} {
			spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
				ResourceIdentifier: of, FeedbackRules: []workv1.FeedbackRule{{Type: workv1.FeedbackWellKnownStatus}}})
		}
		spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "namespaces", Name: ns + "-watched"}, FeedbackScrapeType: workv1.FeedbackWatch,
			FeedbackRules: []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{
				{Name: "phase", Path: ".status.phase"}, {Name: "name", Path: ".metadata.name"}, {Name: "team", Path: ".metadata.labels.team", Version: "v1"}}}}})
		createWork(ctx, "known", spec,
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {namespace: `+ns+`, name: everywhere}, spec: {selector: {matchLabels: {app: e}},
				template: {metadata: {labels: {app: e}}, spec: {containers: [{name: main, image: "example.com/main:1"}]}}}}`,
			jobOf(ns, "once", 0), `{apiVersion: v1, kind: Namespace, metadata: {name: `+ns+`-watched}}`)
		Eventually(values(ctx, "known", 0)).Should(HaveExactElements("NumberReady"+integer+"1}", "DesiredNumberScheduled"+integer+"1}", "NumberAvailable"+integer+"1}"))
		Eventually(values(ctx, "known", 1)).Should(ContainElement(`JobComplete={"type":"String","string":"True"}`))
		phaseAndName := []any{`phase={"type":"String","string":"Active"}`, `name={"type":"String","string":"` + ns + `-watched"}`}
		Eventually(values(ctx, "known", 2)).Should(HaveExactElements(phaseAndName...))
		kubectl(ctx, kubeconfigOfMember(), "", "label", "namespace", ns+"-watched", "team=blue")
		Eventually(values(ctx, "known", 2)).Should(HaveExactElements(append(phaseAndName, `team={"type":"String","string":"blue"}`)...))
	})

	It("names each value that it cannot report and reports the others", func(ctx SpecContext) {
		ns := expect.FreshNamespace(ctx, memberClient)
		spec := configured("", "configmaps", ns, "a", func(o *workv1.ManifestConfigOption) {
			o.FeedbackRules = []workv1.FeedbackRule{{Type: workv1.FeedbackWellKnownStatus}, {Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{
				{Name: "x", Path: ".data.x"}, {Name: "all", Path: ".data"}, {Name: "none", Path: ".data.none"}}}}
		})
		createWork(ctx, "some-fail", spec, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(of(ctx, "some-fail", 0)).Should(HaveExactElements(applied, available, And(
			HavePrefix("StatusFeedbackSynced False StatusFeedbackSyncFailed Sync status feedback failed with error "),
			ContainSubstring("cannot find the wellknown statuses"), ContainSubstring("of the value for all is not found"))))
		Expect(values(ctx, "some-fail", 0)(Default)).To(HaveExactElements(`x={"type":"String","string":"1"}`))
		Eventually(conditions(ctx, "some-fail")).Should(beDone())
	})

	It("reports other values as JSON if the agent is configured to", func(ctx SpecContext) {
		insteadOfTheAgent(agentOptions{raw: true})
		ns := expect.FreshNamespace(ctx, memberClient)
		spec := configured("", "configmaps", ns, "a", func(o *workv1.ManifestConfigOption) {
			o.FeedbackRules = []workv1.FeedbackRule{{Type: workv1.FeedbackJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "all", Path: ".data"}}}}
		})
		createWork(ctx, "raw", spec, build.ConfigMapText(ns, "a", "x", "1"))
		Eventually(values(ctx, "raw", 0)).Should(HaveExactElements(`all={"type":"JsonRaw","jsonRaw":"{\"x\":\"1\"}"}`))
	})

	It("reads a constantly changing object once per second and never writes it", func(ctx SpecContext) {
		var reads, writes atomic.Int32
		insteadOfTheAgent(agentOptions{wrap: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				if strings.HasSuffix(request.URL.Path, "/deployments/busy") {
					if request.Method == http.MethodGet {
						reads.Add(1)
					} else {
						writes.Add(1)
					}
				}
				return next.RoundTrip(request)
			})
		}})
		ns := expect.FreshNamespace(ctx, memberClient)
		createWork(ctx, "busy", wellKnown(ns), strings.Replace(build.DeploymentText(ns, "busy", "busy"), "replicas: 2", "replicas: 0", 1))
		Eventually(conditions(ctx, "busy")).Should(beDone())
		Eventually(values(ctx, "busy", 0)).Should(BeEmpty(), "there are no replicas")
		began, readsBefore, writesBefore := metav1.Now(), reads.Load(), writes.Load()
		for n := range 60 {
			setObserved(ctx, ns, "busy", int32(n))
		}
		seconds := int32(metav1.Now().Sub(began.Time).Seconds()) + 2
		Expect(reads.Load()-readsBefore).To(BeNumerically("<=", seconds), "reads while it changed 60 times")
		Expect(writes.Load()).To(Equal(writesBefore))
	})
})

// jobOf returns a Job with a number of Pods. Without Pods it is Complete once its controller has
// seen it; with one it never is, because it is suspended.
func jobOf(namespace, name string, pods int) string {
	return fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {namespace: %s, name: %s}, spec: {completions: %d, suspend: %t,
		template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.com/main:1"}]}}}}`, namespace, name, pods, pods > 0)
}

// setObserved changes the status of a Deployment in a way that its controller ignores.
func setObserved(ctx context.Context, namespace, name string, collisions int32) {
	GinkgoHelper()
	Eventually(func() error {
		web := &appsv1.Deployment{}
		if err := memberClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, web); err != nil {
			return err
		}
		web.Status.CollisionCount = &collisions
		return memberClient.Status().Update(ctx, web)
	}).Should(Succeed())
}
