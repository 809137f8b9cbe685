// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

const (
	// workBytes limits the size of a Work: the default limit of a request to etcd, minus some space for
	// metadata.
	workBytes = 1_500_000
	// statusBytes is the size of one manifest's entry in a Work's status: identity and two conditions
	// with short messages have 600 to 750 bytes.
	statusBytes = 768
)

// desiredWork is a Work that the binding needs.
type desiredWork struct {
	// Work shares its manifests with the snapshots and must not be changed.
	*placementv1beta1.Work
	// hash is the hash of the manifests.
	hash string
	// keepManifests is true if the existing Work has the manifests, and this one does not.
	keepManifests bool
}

// build returns the Works of a binding, one for each part and envelope.
func build(in input, index string, parts []part) ([]desiredWork, error) {
	parts, err := split(parts)
	if err != nil {
		return nil, err
	}
	annotations, err := workAnnotations(in.binding.GetSpec())
	if err != nil {
		return nil, err
	}
	works, plain := make([]desiredWork, 0, len(parts)), 0
	for _, p := range parts {
		name := workName(in.binding, p, plain)
		if p.Envelope == nil {
			plain++
		}
		works = append(works, desiredWork{newWork(in, name, index, annotations, p), p.Hash, p.keepManifests})
	}
	return works, nil
}

// split divides parts whose Works would be too large for their status, which has an entry for each
// manifest. Snapshots are limited in bytes only: 800 KiB of small objects would have a status of
// several megabytes, which no agent could write. Parts that fit stay undivided, because another
// division would move objects between Works.
func split(parts []part) ([]part, error) {
	cut := make([]part, 0, len(parts))
	for _, p := range parts {
		pieces := piecesOf(p.Manifests)
		if len(pieces) < 2 {
			cut = append(cut, p)
			continue
		}
		for i, manifests := range pieces {
			piece := p
			piece.piece, piece.Manifests, piece.Resources = i, manifests, nil
			if i > 0 {
				piece.renderedFrom = ""
			}
			var err error
			if piece.Hash, err = snapshot.Hash(manifests); err != nil {
				return nil, err
			}
			cut = append(cut, piece)
		}
	}
	return cut, nil
}

// piecesOf divides manifests, in order, into as few lists as fit into Works.
func piecesOf(manifests []placementv1beta1.Manifest) [][]placementv1beta1.Manifest {
	var pieces [][]placementv1beta1.Manifest
	size, from := 0, 0
	for i := range manifests {
		needs := len(manifests[i].Raw) + statusBytes
		if size+needs > workBytes && i > from {
			pieces = append(pieces, manifests[from:i:i])
			size, from = 0, i
		}
		size += needs
	}
	return append(pieces, manifests[from:])
}

// workName is the name of a part's Work. plain is the number of parts without an envelope before it.
func workName(b placementv1beta1.BindingObject, p part, plain int) string {
	placement := b.GetLabels()[placementv1beta1.ParentPlacementLabel]
	switch {
	case p.Envelope != nil && p.piece > 0:
		return envelopeWork(b, p.Envelope) + "-" + strconv.Itoa(p.piece)
	case p.Envelope != nil:
		return envelopeWork(b, p.Envelope)
	case plain > 0:
		return placementv1beta1.SubWorkName(b.GetNamespace(), placement, plain-1)
	default:
		return placementv1beta1.WorkName(b.GetNamespace(), placement)
	}
}

// envelopeWork is the name of an envelope's first Work.
func envelopeWork(b placementv1beta1.BindingObject, e *placementv1beta1.EnvelopeIdentifier) string {
	return placementv1beta1.EnvelopeWorkName(b.GetNamespace(), b.GetLabels()[placementv1beta1.ParentPlacementLabel], *e)
}

func newWork(in input, name, index string, annotations map[string]string, p part) *placementv1beta1.Work {
	spec := in.binding.GetSpec()
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1beta1.MemberNamespace(spec.TargetCluster), Name: name,
		Labels: workLabels(in.binding, index), Annotations: annotations, OwnerReferences: ownersOf(in.binding),
	}}
	w.Spec.Workload.Manifests, w.Spec.ApplyStrategy = p.Manifests, spec.ApplyStrategy
	if in.placement != nil {
		// It is not part of the binding, because it changes nothing on the member.
		w.Spec.ReportBackStrategy = in.placement.GetSpec().Strategy.ReportBackStrategy
	}
	if p.Envelope != nil {
		w.Labels[placementv1beta1.EnvelopeTypeLabel] = string(p.Envelope.Type)
		naming.Label(w, placementv1beta1.EnvelopeNameLabel, p.Envelope.Name)
		w.Labels[placementv1beta1.EnvelopeNamespaceLabel] = p.Envelope.Namespace
	}
	if p.renderedFor != "" {
		w.Annotations = maps.Clone(w.Annotations) // The binding's Works share them.
		w.Annotations[placementv1beta1.RenderedForAnnotation] = p.renderedFor
	}
	if p.renderedFrom != "" {
		w.Annotations[placementv1beta1.RenderedFromAnnotation] = p.renderedFrom
	}
	// The agent would write its finalizer first. A member that leaves or is removed loses it with its
	// namespace on the hub (membership.Reconciler). A member that never joined has no agent to remove it.
	if in.member.IsJoined() {
		controllerutil.AddFinalizer(w, placementv1beta1.WorkCleanupFinalizer)
	}
	return w
}

func workLabels(b placementv1beta1.BindingObject, index string) map[string]string {
	labels := map[string]string{
		placementv1beta1.ParentPlacementLabel:             b.GetLabels()[placementv1beta1.ParentPlacementLabel],
		placementv1beta1.ParentBindingLabel:               b.GetName(),
		placementv1beta1.ParentResourceSnapshotIndexLabel: index,
	}
	if b.GetNamespace() != "" {
		labels[placementv1beta1.ParentPlacementNamespaceLabel] = b.GetNamespace()
	}
	return labels
}

func workAnnotations(spec *placementv1beta1.ResourceBindingSpec) (map[string]string, error) {
	clusterHash, err := hash.JSON(spec.ClusterResourceOverrideSnapshots)
	if err != nil {
		return nil, err
	}
	namespacedHash, err := hash.JSON(spec.ResourceOverrideSnapshots)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		placementv1beta1.ParentResourceSnapshotNameAnnotation:                spec.ResourceSnapshotName,
		placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation:        namespacedHash,
		placementv1beta1.ParentClusterResourceOverrideSnapshotHashAnnotation: clusterHash,
		placementv1beta1.DeletionCauseAnnotation:                             placementv1beta1.DeletionNone,
	}, nil
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
