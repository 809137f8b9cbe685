// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// jobOf returns the engine's Work.
func (r *Reconciler) jobOf(work *placementv1beta1.Work, record *placementv1beta1.AppliedWork, strategy placementv1beta1.ApplyStrategy) engine.Work {
	return engine.Work{
		Name:           work.Name,
		Record:         ownerOf(record),
		Owner:          owner{r.records, work, strategy},
		Origin:         r.options.originOf(work),
		Under:          under(strategy, ownerOf(record), mirrors(work.Spec.ReportBackStrategy)),
		Ledger:         ledger{r.records, record},
		Reported:       referred(work.Status.ManifestConditions),
		RetainsRemoved: markOf(record).Is(),

		UnmarkedBefore:   unmarkedBefore(record),
		DeletesTakenOver: r.options.DeletesTakenOver,
	}
}

func referred(manifests []placementv1beta1.ManifestCondition) []manifest.Ref {
	refs := make([]manifest.Ref, 0, len(manifests))
	for _, m := range manifests {
		refs = append(refs, manifest.Ref(m.Identifier))
	}
	return refs
}

// under identifies everything that results depend on besides manifest and object.
func under(strategy placementv1beta1.ApplyStrategy, owner metav1.OwnerReference, mirror bool) string {
	text, err := json.Marshal(strategy)
	if err != nil {
		return string(owner.UID)
	}
	return fmt.Sprint(owner.UID, mirror, string(text))
}

// originOf returns a readable name for the placement of a Work. It is unique across hubs, and also
// for Works without a placement. It is "" if the Work no longer exists.
func (o Options) originOf(work metav1.Object) string {
	if work.GetUID() == "" {
		return ""
	}
	labels := work.GetLabels()
	name, namespace := labels[placementv1beta1.ParentPlacementLabel], labels[placementv1beta1.ParentPlacementNamespaceLabel]
	origin := retention.OriginOf(namespace, name)
	if name == "" {
		origin = "Work " + work.GetName()
	}
	return retention.WithHub(origin, o.HubName)
}

// ownerOf returns the owner reference of all objects of a Work.
func ownerOf(record *placementv1beta1.AppliedWork) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion:         placementv1beta1.GroupVersion.String(),
		Kind:               appliedWorkKind,
		Name:               record.Name,
		UID:                record.UID,
		BlockOwnerDeletion: ptr.To(true),
	}
}
