// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// desiredWorks builds the Works of a binding from its group of snapshots, one for each part and
// envelope. They share the group's manifests and must not be written into. back is the placement's
// reportBackStrategy, or nil.
func desiredWorks(b placementv1beta1.BindingObject, group *snapshot.Group, back *placementv1beta1.ReportBackStrategy) ([]*placementv1beta1.Work, error) {
	spec := b.GetSpec()
	placement := b.GetLabels()[placementv1beta1.ParentPlacementLabel]
	annotations, err := workAnnotations(spec)
	if err != nil {
		return nil, err
	}
	works, subindex := make([]*placementv1beta1.Work, 0, len(group.Parts)), -1
	for _, part := range group.Parts {
		w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace:       clusterv1beta1.MemberNamespace(spec.TargetCluster),
			Name:            placementv1beta1.WorkName(b.GetNamespace(), placement),
			Labels:          workLabels(b, placement, group.Index),
			Annotations:     annotations,
			OwnerReferences: ownersOf(b),
		}}
		switch {
		case part.Envelope != nil:
			w.Name = placementv1beta1.EnvelopeWorkName(b.GetNamespace(), placement, *part.Envelope)
			if part.Piece > 0 {
				w.Name += "-" + strconv.Itoa(part.Piece)
			}
			w.Labels[placementv1beta1.EnvelopeTypeLabel] = string(part.Envelope.Type)
			naming.Label(w, placementv1beta1.EnvelopeNameLabel, part.Envelope.Name)
			w.Labels[placementv1beta1.EnvelopeNamespaceLabel] = part.Envelope.Namespace
		case subindex >= 0:
			w.Name = placementv1beta1.SubWorkName(b.GetNamespace(), placement, subindex)
			fallthrough
		default:
			subindex++
		}
		w.Spec.Workload.Manifests = part.Manifests
		w.Spec.ApplyStrategy = spec.ApplyStrategy
		w.Spec.ReportBackStrategy = back
		works = append(works, w)
	}
	return works, nil
}

func workLabels(b placementv1beta1.BindingObject, placement, index string) map[string]string {
	labels := map[string]string{
		placementv1beta1.ParentPlacementLabel:             placement,
		placementv1beta1.ParentBindingLabel:               b.GetName(),
		placementv1beta1.ParentResourceSnapshotIndexLabel: index,
	}
	if b.GetNamespace() != "" {
		labels[placementv1beta1.ParentPlacementNamespaceLabel] = b.GetNamespace()
	}
	return labels
}

func workAnnotations(spec *placementv1beta1.ResourceBindingSpec) (map[string]string, error) {
	clusterHash, err := hashOf(spec.ClusterResourceOverrideSnapshots)
	if err != nil {
		return nil, err
	}
	hash, err := hashOf(spec.ResourceOverrideSnapshots)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		placementv1beta1.ParentResourceSnapshotNameAnnotation:                spec.ResourceSnapshotName,
		placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation:        hash,
		placementv1beta1.ParentClusterResourceOverrideSnapshotHashAnnotation: clusterHash,
	}, nil
}

func hashOf(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("hashing: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// ownersOf lets the hub's garbage collector delete Works whose binding was deleted without its
// finalizer. A namespaced binding cannot own a Work in another namespace: the collector would treat the
// Work as an orphan. The version is the first that the hub serves, because the collector reads that
// one. For any other it would read both objects a second time.
func ownersOf(b placementv1beta1.BindingObject) []metav1.OwnerReference {
	if b.GetNamespace() != "" {
		return nil
	}
	return []metav1.OwnerReference{{
		APIVersion: placementv1beta1.GroupName + "/v1", Kind: "ClusterResourceBinding", Name: b.GetName(), UID: b.GetUID(),
		BlockOwnerDeletion: new(true),
	}}
}

func belongs(w *placementv1beta1.Work, b placementv1beta1.BindingObject) bool {
	return w.Labels[placementv1beta1.ParentBindingLabel] == b.GetName() &&
		w.Labels[placementv1beta1.ParentPlacementNamespaceLabel] == b.GetNamespace()
}

// upToDate reports whether the cached Work has the desired content. hash is the hash of the desired
// manifests.
func upToDate(have, desired *placementv1beta1.Work, hash string) (bool, error) {
	if !contains(have.Labels, desired.Labels) || !contains(have.Annotations, desired.Annotations) ||
		!equality.Semantic.DeepEqual(have.Spec.ApplyStrategy, desired.Spec.ApplyStrategy) ||
		!equality.Semantic.DeepEqual(have.Spec.ReportBackStrategy, desired.Spec.ReportBackStrategy) {
		return false, nil
	}
	is, err := manifestsHash(have)
	return is == hash, err
}

func contains(have, wanted map[string]string) bool {
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return true
}

// overwrite returns the cached Work with the desired content. Other metadata stays.
func overwrite(have, desired *placementv1beta1.Work) *placementv1beta1.Work {
	w := have.DeepCopy()
	if w.Labels == nil {
		w.Labels = map[string]string{}
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	maps.Copy(w.Labels, desired.Labels)
	maps.Copy(w.Annotations, desired.Annotations)
	delete(w.Annotations, manifestsHashKey)
	w.Spec = *desired.Spec.DeepCopy()
	return w
}

// hold adds the finalizer that the agent would write first to new Works of a joined member. A member
// that leaves or is removed loses the finalizer with its namespace on the hub (membership.Reconciler).
// A member that never joined has no agent to remove it.
func hold(desired []*placementv1beta1.Work, member *clusterv1beta1.MemberCluster) {
	if !member.IsJoined() {
		return
	}
	for _, w := range desired {
		controllerutil.AddFinalizer(w, placementv1beta1.WorkCleanupFinalizer)
	}
}
