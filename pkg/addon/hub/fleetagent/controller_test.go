// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetagent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/test/support/build"
)

// agents are those of one cluster.
type agents struct {
	mirrors bool
	member  *clusterv1beta1.MemberCluster
	// revoked counts revocations.
	revoked int
}

func (a *agents) Manifests(_ context.Context, _ *registrationv1alpha1.Cluster, config *addonv1alpha1.AddOnDeploymentConfigSpec, registered bool, known string) ([]*unstructured.Unstructured, string, *refusal.Refusal, error) {
	version := "first"
	if registered {
		version = "registered"
	}
	if config != nil {
		version += "-" + config.ProxyConfig.HTTPSProxy
	}
	if version == known {
		return nil, version, nil, nil
	}
	return []*unstructured.Unstructured{manifest("ClusterRole", version)}, version, nil, nil
}

func (a *agents) Revoke(context.Context, *registrationv1alpha1.Cluster) error {
	a.revoked++
	return nil
}

func (a *agents) MemberOf(context.Context, *registrationv1alpha1.Cluster) (*clusterv1beta1.MemberCluster, error) {
	return a.member, nil
}

func (a *agents) Mirrors(context.Context, *clusterv1.ManagedCluster) (bool, error) {
	return a.mirrors, nil
}

func reconciler(of *agents, all ...client.Object) *Reconciler {
	known := build.Scheme(addonv1alpha1.AddToScheme, clusterv1.AddToScheme, clusterv1beta1.AddToScheme, workv1.AddToScheme, registrationv1alpha1.AddToScheme)
	all = append(all, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named(addonv1alpha1.FleetgateAgent)})
	hub := fake.NewClientBuilder().WithScheme(known).WithStatusSubresource(&addonv1alpha1.ManagedClusterAddOn{}, &workv1.ManifestWork{}).WithObjects(all...).Build()
	return &Reconciler{Client: hub, Live: hub, Configs: hub, Agents: of, Namespace: "clusters"}
}

// edgeAddOn is the add-on with the configurations that it was given.
func edgeAddOn() *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("edge", addonv1alpha1.FleetgateAgent)}
	addOn.Status.Conditions = []metav1.Condition{{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue}}
	return addOn
}

// reconciled reconciles the add-on of the cluster, and returns its condition Available.
func reconciled(t *testing.T, r *Reconciler) string {
	t.Helper()
	addOn := edgeAddOn()
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(addOn)}); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
		if apierrors.IsNotFound(err) {
			return "gone"
		}
		t.Fatal(err)
	}
	condition := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	if condition == nil {
		return "no condition"
	}
	return string(condition.Status) + " " + condition.Reason
}

func exists(t *testing.T, r *Reconciler, object client.Object) bool {
	t.Helper()
	err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func edgeCluster() *registrationv1alpha1.Cluster {
	return &registrationv1alpha1.Cluster{ObjectMeta: build.In("clusters", "edge")}
}

func edgeWork() *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: build.In("edge", workName)}
}

func TestReconcile_FollowsTheAgentUntilItLeaves(t *testing.T) {
	of := &agents{}
	r := reconciler(of, edgeAddOn(), acceptedCluster("edge"))
	if got := reconciled(t, r); got != "False WaitingForKlusterlet" {
		t.Errorf("delivered: %s", got)
	}
	fleet, work := edgeCluster(), edgeWork()
	if !exists(t, r, fleet) || !isFor(fleet, acceptedCluster("edge")) || fleet.Spec.ClientID == "" || !exists(t, r, work) || knownVersion(work) != "first" || of.revoked != 0 {
		t.Errorf("got %+v, %+v, %d", fleet, work, of.revoked)
	}

	of.member = reported("True", "True")
	if got := reconciled(t, r); got != "True FeatureAvailable" {
		t.Errorf("joined: %s", got)
	}
	cluster := acceptedCluster("edge")
	if !exists(t, r, work) || knownVersion(work) != "registered" || of.revoked != 1 || !exists(t, r, cluster) || cluster.Annotations[addonv1alpha1.AgentMemberAnnotation] != "member" {
		t.Errorf("got %+v, %d, %+v", work, of.revoked, cluster)
	}

	// The member leaves before its agent is deleted.
	fleet.Finalizers = []string{"test/finalizer"}
	if err := r.Client.Update(t.Context(), fleet); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Delete(t.Context(), edgeAddOn()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := reconciled(t, r); got != "False Removing" || !exists(t, r, edgeWork()) {
			t.Errorf("leaving: %s", got)
		}
	}
	if !exists(t, r, fleet) || fleet.DeletionTimestamp == nil {
		t.Errorf("got %+v", fleet)
	}
	fleet.Finalizers = nil
	if err := r.Client.Update(t.Context(), fleet); err != nil {
		t.Fatal(err)
	}
	if got := reconciled(t, r); got != "False Removing" || exists(t, r, edgeWork()) {
		t.Errorf("the member has left: %s", got)
	}
	cluster = acceptedCluster("edge")
	if got := reconciled(t, r); got != "gone" || !exists(t, r, cluster) || len(cluster.Annotations) > 0 {
		t.Errorf("the agent is gone: %s, %+v", got, cluster)
	}
}

func TestReconcile_DeliversTheConfigurationThatTheClusterWasGiven(t *testing.T) {
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: build.In("settings", "proxy")}
	config.Spec.ProxyConfig.HTTPSProxy = "proxy"
	name := addonv1alpha1.ConfigReferent{Namespace: "settings", Name: "proxy"}
	addOn, of := edgeAddOn(), &agents{}
	addOn.Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "host"}
	addOn.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: template.DeploymentConfigs(), ConfigReferent: name}}
	r := reconciler(of, addOn, acceptedCluster("edge"), config)
	given := func(change func(*addonv1alpha1.ManagedClusterAddOnStatus)) {
		t.Helper()
		if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
			t.Fatal(err)
		}
		change(&addOn.Status)
		if err := r.Client.Status().Update(t.Context(), addOn); err != nil {
			t.Fatal(err)
		}
	}
	given(func(status *addonv1alpha1.ManagedClusterAddOnStatus) {
		status.Conditions[0].Status = metav1.ConditionFalse
	})
	if got := reconciled(t, r); got != "False ConfigurationsNotConfigured" || exists(t, r, edgeWork()) {
		t.Errorf("before the rollout: %s", got)
	}
	given(func(status *addonv1alpha1.ManagedClusterAddOnStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured"})
		status.ConfigReferences = []addonv1alpha1.ConfigReference{{ConfigGroupResource: template.DeploymentConfigs(), ConfigReferent: name, DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: name}}}
	})
	reconciled(t, r) // It writes the hash.
	work := edgeWork()
	if got := reconciled(t, r); got != "False WaitingForKlusterlet" || !exists(t, r, work) || knownVersion(work) != "first-proxy" {
		t.Errorf("configured: %s, %q", got, knownVersion(work))
	}
	if hashes, complete := objects.Hashes(live(t, r)); !complete || work.Annotations[workv1.ConfigSpecHashAnnotation] != fmt.Sprintf(`{"addondeploymentconfigs.addon.open-cluster-management.io/settings/proxy":%q}`, slices.Collect(maps.Values(hashes))[0]) {
		t.Errorf("hashes: %v, %v", hashes, work.Annotations)
	}

	of.member = reported("True", "True")
	work.UID = "work" // The fake API server gives it none.
	if err := r.Client.Update(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	config.Spec.Registries = []addonv1alpha1.ImageMirror{{Mirror: "mallory.example.com"}}
	if err := r.Client.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	reconciled(t, r)
	if got := reconciled(t, r); got != "True FeatureAvailable" || !exists(t, r, work) || knownVersion(work) != "first-proxy" {
		t.Errorf("not supported: %s, %q", got, knownVersion(work))
	}
	applied := meta.FindStatusCondition(live(t, r).Status.Conditions, addonv1alpha1.ConditionManifestApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || applied.Message != "The AddOnDeploymentConfig has registries, which fleetgate-agent does not support; configure one that has only proxyConfig.httpsProxy, proxyConfig.noProxy and nodePlacement" {
		t.Errorf("not supported: %v", applied)
	}
	if hosting := meta.FindStatusCondition(live(t, r).Status.Conditions, addonv1alpha1.ConditionHostingManifestApplied); hosting == nil || hosting.Status != metav1.ConditionFalse {
		t.Errorf("hosted: %v", hosting)
	}
}

// live is the add-on.
func live(t *testing.T, r *Reconciler) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	addOn := edgeAddOn()
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
		t.Fatal(err)
	}
	return addOn
}

func TestReconcile_DeliversNothing(t *testing.T) {
	taken := &clusterv1beta1.MemberCluster{ObjectMeta: build.Named("edge")}
	foreign := edgeCluster()
	foreign.UID = "foreign"
	for name, tc := range map[string]struct {
		of      *agents
		objects []client.Object
		want    string
	}{
		"a member with its own agent":         {&agents{mirrors: true}, []client.Object{acceptedCluster("edge"), taken.DeepCopy()}, "True FeatureAvailable"},
		"a MemberCluster of the name":         {&agents{}, []client.Object{acceptedCluster("edge"), taken.DeepCopy()}, "False MemberExists"},
		"a Cluster of the name":               {&agents{}, []client.Object{acceptedCluster("edge"), foreign}, "False MemberExists"},
		"a namespace without a cluster":       {&agents{}, nil, "False ClusterNotAccepted"},
		"a Cluster whose member is another's": {&agents{member: &clusterv1beta1.MemberCluster{ObjectMeta: build.Named("clusters-edge")}}, []client.Object{acceptedCluster("edge")}, "False MemberExists"},
	} {
		r := reconciler(tc.of, append(tc.objects, edgeAddOn())...)
		if got := reconciled(t, r); got != tc.want || exists(t, r, edgeWork()) {
			t.Errorf("%s: %s", name, got)
		}
	}

	// An add-on that delivered nothing deletes nothing.
	r := reconciler(&agents{mirrors: true}, acceptedCluster("edge"), taken, edgeAddOn())
	reconciled(t, r)
	if err := r.Client.Delete(t.Context(), edgeAddOn()); err != nil {
		t.Fatal(err)
	}
	if got := reconciled(t, r); got != "gone" || !exists(t, r, taken) {
		t.Errorf("got %s", got)
	}
}

// Such a member would otherwise hold up the rollout of a configuration.
func TestReconcile_CompletesForAMemberWithItsOwnAgent(t *testing.T) {
	addOn := edgeAddOn()
	given := &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "settings", Name: "proxy"}, SpecHash: "1f6a"}
	addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{ConfigGroupResource: template.DeploymentConfigs(), DesiredConfig: given}}
	r := reconciler(&agents{mirrors: true}, addOn, acceptedCluster("edge"))
	reconciled(t, r)
	status := live(t, r).Status
	if progressing := meta.FindStatusCondition(status.Conditions, addonv1alpha1.ConditionProgressing); progressing == nil || progressing.Reason != addonv1alpha1.ReasonCompleted {
		t.Errorf("got %v", progressing)
	}
	if applied := status.ConfigReferences[0].LastAppliedConfig; applied == nil || *applied != *given {
		t.Errorf("applied is %v", applied)
	}
}

func TestReconcile_TaintsTheMemberOfADeniedCluster(t *testing.T) {
	member := reported("True", "True")
	cluster, fleet := acceptedCluster("edge"), fleetCluster("cluster")
	fleet.Namespace = "clusters"
	r := reconciler(&agents{member: member}, edgeAddOn(), cluster, fleet, member.DeepCopy())
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(member), member); err != nil {
		t.Fatal(err)
	}
	reconciled(t, r)
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.HubAcceptsClient = false
	if err := r.Client.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := reconciled(t, r); got != "False ClusterNotAccepted" {
			t.Errorf("got %s", got)
		}
	}
	now := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	if !exists(t, r, now) || now.IsApproved() || len(now.Spec.Taints) != 1 {
		t.Errorf("got %+v", now.Spec)
	}
}
