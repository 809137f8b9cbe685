// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/test/support/build"
)

// Each write of the status is an event for all controllers of add-ons, and the retry wrote another one.
func TestServe_WritesNoStatusFromAnOutdatedManifestWork(t *testing.T) {
	from := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"addonName": "dns", "agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "agents"}},
		}}},
	}}}
	from.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("AddOnTemplate"))
	from.SetName("dns")
	sum, err := hashOf(from)
	if err != nil {
		t.Fatal(err)
	}
	named := addonv1alpha1.ConfigReferent{Name: "dns"}
	of := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "dns", UID: "1"}}
	of.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: templates(), DefaultConfig: &named}}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("edge", "dns")}
	addOn.UID = "2"
	addOn.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: "dns", UID: of.UID}}
	addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: templates(), DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: named, SpecHash: sum},
	}}
	meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue, Reason: "Configured"})
	work := &workv1.ManifestWork{ObjectMeta: build.In("edge", "addon-dns-deploy-0")}
	work.Labels = map[string]string{addonv1alpha1.AddOnNameLabel: "dns"}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "3"}}

	statuses := 0
	hub := fake.NewClientBuilder().WithScheme(build.Scheme(addonv1alpha1.AddToScheme, clusterv1.AddToScheme, workv1.AddToScheme)).
		WithObjects(from, of, addOn, work, cluster).WithStatusSubresource(addOn).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.UpdateOption) error {
			return apierrors.NewConflict(schema.GroupResource{Resource: "manifestworks"}, object.GetName(), nil)
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			statuses++
			return nil
		},
	}).Build()
	r := &Reconciler{
		Client: hub, Live: hub, Configs: hub, Bindings: &Bindings{Manager: hub, Cache: &informertest.FakeInformers{}},
		HashOf: func(work *workv1.ManifestWork) (string, error) { return hash.JSON(&work.Spec) },
	}
	if _, err := r.reconcile(t.Context(), client.ObjectKeyFromObject(addOn)); !apierrors.IsConflict(err) || statuses > 0 {
		t.Errorf("%d writes of the status, and %v", statuses, err)
	}
}
