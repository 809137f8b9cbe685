// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// Two hubs can place objects on one member, with placements of the same name. The agent of each hub
// has its own AppliedWorks. Their names contain the hub's name, if it has one, and an annotation
// has the hub's UID. An agent does not touch the AppliedWorks of another hub.

// HubAnnotation is set on an AppliedWork to the UID of the hub of its Work, as the
// InternalMemberCluster states it. The agent writes it.
const HubAnnotation = clusterv1beta1.AnnotationHub

// membership is the member's membership in a fleet; zero if it has none.
type membership struct {
	// id changes each time the member joins.
	id string
	// hub is the UID of the hub; empty if the hub does not state it.
	hub string
	// former is the UID of a lost hub that this one replaces; empty if there is none.
	former string
	// released are the ids of retained objects that an administrator releases.
	released []string
}

// mark sets the annotations with the membership of a Work.
func (m membership) mark(record *placementv1beta1.AppliedWork) {
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, MembershipAnnotation, m.id)
	if m.hub != "" {
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, HubAnnotation, m.hub)
	}
}

func (m membership) isMarkedOn(record *placementv1beta1.AppliedWork) bool {
	return record.Annotations[MembershipAnnotation] == m.id && record.Annotations[HubAnnotation] == m.hub
}

// membership reads the member's present membership from the hub.
func (r *records) membership(ctx context.Context, hub client.Reader) (membership, error) {
	member := &clusterv1beta1.InternalMemberCluster{}
	key := client.ObjectKey{Namespace: r.options.HubNamespace, Name: r.options.Member}
	if found, err := reconcileutil.GetIfExists(ctx, hub, key, member, "asking the hub whether the member belongs to the fleet"); !found {
		return membership{}, err
	}
	found := membership{hub: member.Annotations[clusterv1beta1.AnnotationHub],
		former: member.Annotations[clusterv1beta1.AnnotationFormerHub], released: retention.ReleasedIDs(member)}
	if member.Spec.State == clusterv1beta1.ClusterStateJoin && member.DeletionTimestamp == nil {
		found.id = string(member.UID)
	}
	return found, nil
}

// recordName returns the name of a Work's AppliedWork.
func (o Options) recordName(work string) string {
	if o.HubName == "" {
		return work
	}
	return work + "." + o.HubName
}

// workOf returns the name of the Work for the name of an AppliedWork; false if it can only belong
// to another hub.
func (o Options) workOf(record string) (string, bool) {
	if o.HubName == "" {
		return record, true
	}
	return strings.CutSuffix(record, "."+o.HubName)
}

// isOurs reports whether the record belongs to a Work in our namespace of our hub.
func (r *records) isOurs(record *placementv1beta1.AppliedWork, m membership) bool {
	madeFor := record.Annotations[HubAnnotation]
	return record.Spec.WorkNamespace == r.options.HubNamespace && record.Name == r.options.recordName(record.Spec.WorkName) &&
		(madeFor == "" || madeFor == m.hub || madeFor == m.former)
}

// isOfPresent reports whether a record belongs to the present membership, or to a former hub that
// this hub replaces.
func (m membership) isOfPresent(record *placementv1beta1.AppliedWork) bool {
	return m.id != "" && (record.Annotations[MembershipAnnotation] == m.id ||
		m.former != "" && record.Annotations[HubAnnotation] == m.former)
}

// isOfAnotherHub reports whether the AppliedWork of this name exists and belongs to another hub.
func (r *records) isOfAnotherHub(ctx context.Context, record string) (bool, error) {
	found, err := r.get(ctx, record)
	if found == nil || err != nil {
		return false, err
	}
	m, err := r.membership(ctx, r.hub)
	return !r.isOurs(found, m), err
}

func foreignRecord(record *placementv1beta1.AppliedWork) *refusal.Refusal {
	return &refusal.Refusal{Reason: engine.NotRecorded, Message: fmt.Sprintf(
		"AppliedWork %q on the member belongs to Work %q in namespace %q of another hub: give the agent of one of the hubs a --hub-name, "+
			"or rename the placement. If that hub no longer exists, annotate the MemberCluster with %s=%s",
		record.Name, record.Spec.WorkName, record.Spec.WorkNamespace, clusterv1beta1.AnnotationFormerHub, record.Annotations[HubAnnotation])}
}
