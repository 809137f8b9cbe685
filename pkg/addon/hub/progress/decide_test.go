// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

const hash = `{"addondeploymentconfigs.addon.open-cluster-management.io/default/deploy":"1f6a"}`

// addOnWith is an add-on with one configuration, whose hash may be unknown, and these conditions.
func addOnWith(specHash string, conditions ...string) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: "dns"}}
	addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"},
		DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "default", Name: "deploy"}, SpecHash: specHash},
	}}
	for _, kind := range conditions {
		addOn.Status.Conditions = append(addOn.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	return addOn
}

// workWith is a ManifestWork of generation 2 whose conditions are of the given generation.
func workWith(name, hashes string, observed int64) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	if hashes != "" {
		work.Annotations = map[string]string{workv1.ConfigSpecHashAnnotation: hashes}
	}
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		work.Status.Conditions = append(work.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: observed})
	}
	return work
}

func TestProgressing_ReportsWhatIsMissing(t *testing.T) {
	hosted := addOnWith("1f6a", "ManifestApplied")
	hosted.Annotations = map[string]string{addonv1alpha1.HostingClusterAnnotation: "host"}
	unsupported := addOnWith("1f6a", "ManifestApplied")
	unsupported.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "example.com", Resource: "foos"}}}
	plain := addOnWith("", "ManifestApplied")
	plain.Status.ConfigReferences = nil
	failing := workWith("addon-dns-deploy-0", hash, 2)
	failing.Status.Conditions[0].Status = metav1.ConditionFalse
	ready := workWith("addon-dns-deploy-0", hash, 2)
	const progressed = "True/Progressing/progressing... "
	for name, tc := range map[string]struct {
		addOn *addonv1alpha1.ManagedClusterAddOn
		works []*workv1.ManifestWork
		want  string
	}{
		"a kind that the add-on does not support": {unsupported, nil, "False/ConfigurationUnsupported/Configuration with gvr example.com/foos is not supported for this addon"},
		"the manager has not begun":               {addOnWith("1f6a"), nil, "False/WaitingForManifestApplied/Waiting for ManagedClusterAddOn ManifestApplied condition"},
		"nor on the hosting cluster":              {hosted, nil, "False/WaitingForHostingManifestApplied/Waiting for ManagedClusterAddOn HostingManifestApplied condition"},
		"no ManifestWork":                         {addOnWith("1f6a", "ManifestApplied"), nil, progressed + "no addon works"},
		"another hash":                            {addOnWith("2b7c", "ManifestApplied"), []*workv1.ManifestWork{ready}, progressed + "mca and work configs mismatch"},
		"an unknown hash":                         {addOnWith("", "ManifestApplied"), []*workv1.ManifestWork{ready}, progressed + "mca and work configs mismatch"},
		"a ManifestWork without hashes":           {addOnWith("1f6a", "ManifestApplied"), []*workv1.ManifestWork{workWith("addon-dns-deploy-0", "", 2)}, progressed + "mca and work configs mismatch"},
		"a ManifestWork with unreadable hashes":   {addOnWith("1f6a", "ManifestApplied"), []*workv1.ManifestWork{workWith("addon-dns-deploy-0", "{", 2)}, progressed + "mca and work configs mismatch"},
		"conditions of an earlier generation":     {addOnWith("1f6a", "ManifestApplied"), []*workv1.ManifestWork{workWith("addon-dns-deploy-0", hash, 1)}, progressed + "work is not ready"},
		"manifests that are not applied":          {addOnWith("1f6a", "ManifestApplied"), []*workv1.ManifestWork{failing}, progressed + "work is not ready"},
		"one of two is missing":                   {addOnWith("1f6a", "ManifestApplied"), []*workv1.ManifestWork{ready, workWith("addon-dns-deploy-1", hash, 1)}, progressed + "work is not ready"},
		"done":                                    {addOnWith("1f6a", "ManifestApplied"), []*workv1.ManifestWork{ready, workWith("addon-dns-pre-delete", "", 0)}, "False/Completed/completed with no errors."},
		"done without a configuration":            {plain, []*workv1.ManifestWork{workWith("addon-dns-deploy-0", "", 2)}, "False/Completed/completed with no errors."},
	} {
		t.Run(name, func(t *testing.T) {
			got := progressing(tc.addOn, tc.works)
			if said := string(got.Status) + "/" + got.Reason + "/" + got.Message; said != tc.want {
				t.Errorf("got  %s\nwant %s", said, tc.want)
			}
		})
	}
}

func TestReport_KeepsAppliedConfigurations(t *testing.T) {
	addOn := addOnWith("1f6a", "ManifestApplied")
	works := []*workv1.ManifestWork{workWith("addon-dns-deploy-0", hash, 2)}
	Report(addOn, works)
	if applied := addOn.Status.ConfigReferences[0].LastAppliedConfig; applied == nil || applied.SpecHash != "1f6a" {
		t.Fatalf("applied is %+v", applied)
	}
	addOn.Status.ConfigReferences[0].DesiredConfig.SpecHash = "2b7c"
	Report(addOn, works)
	if applied := addOn.Status.ConfigReferences[0].LastAppliedConfig; applied.SpecHash != "1f6a" {
		t.Errorf("applied is %+v while the next one is in flight", applied)
	}
}

func TestSetOwner_ReplacesOnlyAPredecessor(t *testing.T) {
	of := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "dns", UID: "new"}}
	for name, tc := range map[string]struct {
		before []metav1.OwnerReference
		want   []string
	}{
		"none":                   {nil, []string{"ClusterManagementAddOn/new/true"}},
		"one in another version": {[]metav1.OwnerReference{{APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ClusterManagementAddOn", Name: "dns", UID: "new"}}, []string{"ClusterManagementAddOn/new/false"}},
		"a predecessor":          {[]metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: "dns", UID: "old", Controller: new(true)}}, []string{"ClusterManagementAddOn/new/true"}},
		"another controller":     {[]metav1.OwnerReference{{Kind: "Other", Name: "x", UID: "x", Controller: new(true)}}, []string{"Other/x/true", "ClusterManagementAddOn/new/false"}},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.before}}
			for range 2 {
				setOwner(addOn, of)
			}
			var got []string
			for _, owner := range addOn.OwnerReferences {
				controls := "false"
				if owner.Controller != nil && *owner.Controller {
					controls = "true"
				}
				got = append(got, owner.Kind+"/"+string(owner.UID)+"/"+controls)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
