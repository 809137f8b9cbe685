// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// bed is the environment of one spec: a namespace whose name is the prefix of its clusters, its
// add-on and its Placements.
type bed struct{ namespace string }

func newBed(ctx context.Context, clusters ...string) *bed {
	GinkgoHelper()
	b := &bed{namespace: expect.FreshNamespace(ctx, hubClient)}
	for _, cluster := range clusters {
		expect.Created(ctx, hubClient, build.Namespace(b.name(cluster)))
		managed := &clusterv1.ManagedCluster{ObjectMeta: build.Named(b.name(cluster))}
		managed.Annotations = map[string]string{"addon.open-cluster-management.io/values": cluster, "people": "x"}
		expect.CreatedForSpec(ctx, hubClient, managed)
	}
	return b
}

func (b *bed) name(of string) string { return b.namespace + "-" + of }

// selected creates a Placement, or changes what it has selected.
func (b *bed) selected(ctx context.Context, placement string, clusters ...string) {
	GinkgoHelper()
	p := &ocmclusterv1beta1.Placement{ObjectMeta: build.In(b.namespace, placement)}
	if err := hubClient.Create(ctx, p); err != nil {
		Expect(apierrors.IsAlreadyExists(err)).To(BeTrue())
	}
	b.decides(ctx, placement, clusters...)
	b.counted(ctx, placement, len(clusters))
}

// decides changes the decisions of a Placement, before its status counts them.
func (b *bed) decides(ctx context.Context, placement string, clusters ...string) {
	GinkgoHelper()
	p := &ocmclusterv1beta1.Placement{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: placement}, p)).To(Succeed())
	decision := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: build.In(b.namespace, placement+"-decision-1")}
	decision.Labels = map[string]string{ocmclusterv1beta1.PlacementLabel: placement, ocmclusterv1beta1.DecisionGroupIndexLabel: "0"}
	decision.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(p, ocmclusterv1beta1.GroupVersion.WithKind("Placement"))}
	if err := hubClient.Create(ctx, decision); err != nil {
		Expect(apierrors.IsAlreadyExists(err)).To(BeTrue())
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(decision), decision)).To(Succeed())
	}
	decision.Status.Decisions = []ocmclusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: b.name(cluster)})
	}
	Expect(hubClient.Status().Update(ctx, decision)).To(Succeed())
}

// counted writes how many clusters a Placement has selected.
func (b *bed) counted(ctx context.Context, placement string, clusters int) {
	GinkgoHelper()
	p := &ocmclusterv1beta1.Placement{}
	Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: placement}, p)).To(Succeed())
	p.Status.NumberOfSelectedClusters = int32(clusters)
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: ocmclusterv1beta1.ConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled"})
	Expect(hubClient.Status().Update(ctx, p)).To(Succeed())
}

// described creates the ClusterManagementAddOn of the bed.
func (b *bed) described(ctx context.Context, change func(*addonv1alpha1.ClusterManagementAddOn)) *addonv1alpha1.ClusterManagementAddOn {
	GinkgoHelper()
	addOn := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named(b.name("addon"))}
	change(addOn)
	expect.CreatedForSpec(ctx, hubClient, addOn)
	return addOn
}

// placed makes Placements the install strategy.
func (b *bed) placed(placements ...string) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(addOn *addonv1alpha1.ClusterManagementAddOn) {
		addOn.Spec.InstallStrategy.Type = addonv1alpha1.InstallPlacements
		for _, placement := range placements {
			addOn.Spec.InstallStrategy.Placements = append(addOn.Spec.InstallStrategy.Placements, addonv1alpha1.PlacementStrategy{
				PlacementRef: addonv1alpha1.PlacementRef{Namespace: b.namespace, Name: placement},
			})
		}
	}
}

// clusters are those with the add-on.
func (b *bed) clusters(ctx context.Context) ([]string, error) {
	list := &addonv1alpha1.ManagedClusterAddOnList{}
	err := hubClient.List(ctx, list, client.MatchingFields{"metadata.name": b.name("addon")})
	clusters := []string{}
	for i := range list.Items {
		clusters = append(clusters, list.Items[i].Namespace[len(b.namespace)+1:])
	}
	return clusters, err
}

func (b *bed) of(ctx context.Context, cluster string) (*addonv1alpha1.ManagedClusterAddOn, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	return addOn, hubClient.Get(ctx, client.ObjectKey{Namespace: b.name(cluster), Name: b.name("addon")}, addOn)
}

func (b *bed) description(ctx context.Context) (*addonv1alpha1.ClusterManagementAddOn, error) {
	addOn := &addonv1alpha1.ClusterManagementAddOn{}
	return addOn, hubClient.Get(ctx, client.ObjectKey{Name: b.name("addon")}, addOn)
}

// conditions are those of the add-on of a cluster.
func (b *bed) conditions(ctx context.Context, cluster string) ([]metav1.Condition, error) {
	addOn, err := b.of(ctx, cluster)
	return addOn.Status.Conditions, err
}

// hash is the hash that the add-on of a cluster was given, and the applied one.
func (b *bed) hash(ctx context.Context, cluster string) ([]string, error) {
	addOn, err := b.of(ctx, cluster)
	if err != nil || len(addOn.Status.ConfigReferences) == 0 {
		return nil, err
	}
	reference := addOn.Status.ConfigReferences[0]
	applied := ""
	if reference.LastAppliedConfig != nil {
		applied = reference.LastAppliedConfig.SpecHash
	}
	return []string{reference.DesiredConfig.SpecHash, applied}, nil
}

// progress is the message about a Placement.
func (b *bed) progress(ctx context.Context, placement int) (string, error) {
	addOn, err := b.description(ctx)
	if err != nil || len(addOn.Status.InstallProgressions) <= placement {
		return "", err
	}
	return expect.Condition(addOn.Status.InstallProgressions[placement].Conditions, addonv1alpha1.ConditionProgressing).Message, nil
}

// hashes writes a hash of each configuration, like the add-on's manager.
func (b *bed) hashes(ctx context.Context, hash string) {
	GinkgoHelper()
	Eventually(func() error {
		addOn, err := b.description(ctx)
		if err != nil {
			return err
		}
		written := false
		for i := range addOn.Status.DefaultConfigReferences {
			addOn.Status.DefaultConfigReferences[i].DesiredConfig.SpecHash, written = hash, true
		}
		for _, progression := range addOn.Status.InstallProgressions {
			for i := range progression.ConfigReferences {
				progression.ConfigReferences[i].DesiredConfig.SpecHash, written = hash, true
			}
		}
		if !written {
			return errors.New("the gateway has not named the configurations yet")
		}
		return hubClient.Status().Update(ctx, addOn)
	}).Should(Succeed())
}

// delivers creates the ManifestWork of a cluster, or updates it, like the add-on's manager, and
// applies it like the cluster.
func (b *bed) delivers(ctx context.Context, cluster, hashes string) {
	GinkgoHelper()
	work := &workv1.ManifestWork{ObjectMeta: build.In(b.name(cluster), "addon-"+b.name("addon")+"-deploy-0")}
	if err := hubClient.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
		work.Labels = map[string]string{addonv1alpha1.AddOnNameLabel: b.name("addon")}
		work.Annotations = map[string]string{workv1.ConfigSpecHashAnnotation: hashes}
		Expect(hubClient.Create(ctx, work)).To(Succeed())
	} else {
		work.Annotations[workv1.ConfigSpecHashAnnotation] = hashes
		Expect(hubClient.Update(ctx, work)).To(Succeed())
	}
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Done", ObservedGeneration: work.Generation})
	}
	Expect(hubClient.Status().Update(ctx, work)).To(Succeed())
	Eventually(func() error {
		addOn, err := b.of(ctx, cluster)
		if err != nil || !meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionTrue, Reason: "Done"}) {
			return err
		}
		return hubClient.Status().Update(ctx, addOn)
	}).Should(Succeed())
}
