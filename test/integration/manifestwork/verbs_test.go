// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork_test

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/expect"
)

func manifests(texts ...string) []workv1.Manifest {
	GinkgoHelper()
	list := make([]workv1.Manifest, 0, len(texts))
	for _, raw := range expect.Raw(texts...) {
		list = append(list, workv1.Manifest{RawExtension: raw})
	}
	return list
}

// createWork creates a ManifestWork in the cluster's namespace.
func createWork(ctx context.Context, name string, spec workv1.ManifestWorkSpec, texts ...string) *workv1.ManifestWork {
	GinkgoHelper()
	spec.Workload.Manifests = manifests(texts...)
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: name}, Spec: spec}
	Expect(hubClient.Create(ctx, work)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { removeWork(ctx, name) })
	return work
}

func updateWork(ctx context.Context, name string, change func(*workv1.ManifestWork)) {
	GinkgoHelper()
	Eventually(func() error {
		work := &workv1.ManifestWork{}
		if err := hubClient.Get(ctx, workKey(name), work); err != nil {
			return err
		}
		change(work)
		return hubClient.Update(ctx, work)
	}).Should(Succeed())
}

func removeWork(ctx context.Context, name string) {
	GinkgoHelper()
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: name}}
	Expect(client.IgnoreNotFound(hubClient.Delete(ctx, work))).To(Succeed())
	Eventually(expect.Gone(ctx, hubClient, work)).Should(BeTrue(), "ManifestWork %s is gone", name)
}

func workKey(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: clusterName, Name: name}
}

func getWork(ctx context.Context, name string) *workv1.ManifestWork {
	GinkgoHelper()
	work := &workv1.ManifestWork{}
	Expect(hubClient.Get(ctx, workKey(name), work)).To(Succeed())
	return work
}

// record gets the AppliedManifestWork of a ManifestWork; nil if there is none.
func record(ctx context.Context, work string) *workv1.AppliedManifestWork {
	GinkgoHelper()
	found := &workv1.AppliedManifestWork{}
	err := memberClient.Get(ctx, client.ObjectKey{Name: hubHash + "-" + work}, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return found
}

// ledger returns the names in an AppliedManifestWork.
func ledger(ctx context.Context, work string) func() []string {
	return func() []string {
		found := record(ctx, work)
		if found == nil {
			return nil
		}
		var names []string
		for _, resource := range found.Status.AppliedResources {
			names = append(names, resource.Name)
		}
		return names
	}
}

// conditions returns the work's conditions for its generation, as type status reason message.
func conditions(ctx context.Context, name string) func(Gomega) []string {
	return func(g Gomega) []string {
		work := &workv1.ManifestWork{}
		g.Expect(hubClient.Get(ctx, workKey(name), work)).To(Succeed())
		var all []string
		for _, c := range work.Status.Conditions {
			if c.ObservedGeneration == work.Generation {
				all = append(all, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
			}
		}
		return all
	}
}

// of returns the conditions of one manifest, as type status reason message.
func of(ctx context.Context, name string, ordinal int) func(Gomega) []string {
	return func(g Gomega) []string {
		work := &workv1.ManifestWork{}
		g.Expect(hubClient.Get(ctx, workKey(name), work)).To(Succeed())
		g.Expect(len(work.Status.ResourceStatus.Manifests)).To(BeNumerically(">", ordinal))
		var all []string
		for _, c := range work.Status.ResourceStatus.Manifests[ordinal].Conditions {
			if c.Type == workv1.ConditionApplied && c.ObservedGeneration != work.Generation {
				continue
			}
			all = append(all, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
		}
		return all
	}
}

// values returns the feedback values of one manifest, as name=value.
func values(ctx context.Context, name string, ordinal int) func(Gomega) []string {
	return func(g Gomega) []string {
		work := &workv1.ManifestWork{}
		g.Expect(hubClient.Get(ctx, workKey(name), work)).To(Succeed())
		g.Expect(len(work.Status.ResourceStatus.Manifests)).To(BeNumerically(">", ordinal))
		var all []string
		for _, v := range work.Status.ResourceStatus.Manifests[ordinal].StatusFeedback.Values {
			text, err := json.Marshal(v.Value)
			g.Expect(err).NotTo(HaveOccurred())
			all = append(all, v.Name+"="+string(text))
		}
		return all
	}
}

const (
	workApplied   = "Applied True AppliedManifestWorkComplete Apply manifest work complete"
	workFailed    = "Applied False AppliedManifestWorkFailed Failed to apply manifest work"
	workAvailable = "Available True ResourcesAvailable All resources are available"

	applied     = "Applied True AppliedManifestComplete Apply manifest complete"
	available   = "Available True ResourceAvailable Resource is available"
	unavailable = "Available False ResourceNotAvailable Resource is not available"
	noFeedback  = "StatusFeedbackSynced True NoStatusFeedbackSynced "
	synced      = "StatusFeedbackSynced True StatusFeedbackSynced "
)

// beDone matches the conditions of a fully applied work.
func beDone() gomegatypes.GomegaMatcher { return HaveExactElements(workApplied, workAvailable) }

// configured returns a spec with one config, for the named objects.
func configured(group, resource, namespace, name string, change func(*workv1.ManifestConfigOption)) workv1.ManifestWorkSpec {
	option := workv1.ManifestConfigOption{ResourceIdentifier: workv1.ResourceIdentifier{Group: group, Resource: resource, Namespace: namespace, Name: name}}
	change(&option)
	return workv1.ManifestWorkSpec{ManifestConfigs: []workv1.ManifestConfigOption{option}}
}

// strategy returns a spec with one update strategy for all ConfigMaps of a namespace.
func strategy(namespace string, how workv1.UpdateStrategy) workv1.ManifestWorkSpec {
	return configured("", "configmaps", namespace, "*", func(o *workv1.ManifestConfigOption) { o.UpdateStrategy = &how })
}
