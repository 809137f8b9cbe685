// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// sizeLimit is the size of manifests in one snapshot before another one is started. With metadata it
// stays well below etcd's limit. A single larger object gets its own snapshot.
const sizeLimit = 800 * 1024

func manifestsOf(objects []*unstructured.Unstructured) ([]placementv1beta1.Manifest, error) {
	manifests := make([]placementv1beta1.Manifest, 0, len(objects))
	for _, object := range objects {
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		manifests = append(manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return manifests, nil
}

// resourceHash is a hash of the selection, including the order, which package selection fixes.
func resourceHash(manifests []placementv1beta1.Manifest) string {
	sum := sha256.New()
	for _, m := range manifests {
		// A manifest is one line of JSON, so different lists have different input.
		sum.Write(m.Raw)
		sum.Write([]byte{'\n'})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// split divides the manifests, in order, into pieces of at most limit bytes. There is always a first
// piece, which may be empty.
func split(manifests []placementv1beta1.Manifest, limit int) [][]placementv1beta1.Manifest {
	pieces := [][]placementv1beta1.Manifest{{}}
	size := 0
	for _, m := range manifests {
		last := len(pieces) - 1
		if size+len(m.Raw) > limit && len(pieces[last]) > 0 {
			pieces = append(pieces, nil)
			last, size = last+1, 0
		}
		pieces[last] = append(pieces[last], m)
		size += len(m.Raw)
	}
	return pieces
}

// desiredResourceSnapshots builds the group with an index; the master is last.
func desiredResourceSnapshots(placement metav1.Object, pieces [][]placementv1beta1.Manifest, hash string, index int, envelopes Envelopes) []placementv1beta1.ResourceSnapshotObject {
	group := make([]placementv1beta1.ResourceSnapshotObject, 0, len(pieces))
	for i, piece := range pieces[1:] {
		s := newResourceSnapshot(placement, piece, index)
		s.SetName(placementv1beta1.ResourceSubSnapshotName(placement.GetName(), index, i))
		s.SetAnnotations(map[string]string{placementv1beta1.SubindexAnnotation: strconv.Itoa(i)})
		group = append(group, s)
	}
	master := newResourceSnapshot(placement, pieces[0], index)
	master.SetName(placementv1beta1.ResourceSnapshotName(placement.GetName(), index))
	master.GetLabels()[placementv1beta1.IsLatestSnapshotLabel] = strconv.FormatBool(true)
	master.SetAnnotations(map[string]string{
		placementv1beta1.ResourceHashAnnotation:              hash,
		placementv1beta1.NumberOfResourceSnapshotsAnnotation: strconv.Itoa(len(pieces)),
		placementv1beta1.NumberOfEnvelopedObjectsAnnotation:  strconv.Itoa(envelopes.count(slices.Concat(pieces...))),
	})
	return append(group, master)
}

func newResourceSnapshot(placement metav1.Object, piece []placementv1beta1.Manifest, index int) placementv1beta1.ResourceSnapshotObject {
	s := objects.NewResourceSnapshot(placement.GetNamespace())
	s.SetNamespace(placement.GetNamespace())
	s.SetLabels(map[string]string{
		placementv1beta1.ParentPlacementLabel: placement.GetName(),
		placementv1beta1.ResourceIndexLabel:   strconv.Itoa(index),
	})
	s.GetSpec().SelectedResources = piece
	return s
}

// surplus returns the snapshots that can be deleted: those of groups beyond the newest limit complete
// ones, and of incomplete groups older than the newest. Groups whose master is used stay.
func surplus(snapshots []*metav1.PartialObjectMetadata, limit int, used map[string]bool) []*metav1.PartialObjectMetadata {
	var complete []int
	keep := map[int]bool{}
	for _, s := range snapshots {
		if !objects.IsMaster(s) {
			continue
		}
		complete = append(complete, objects.ResourceIndex(s))
		if used[s.Name] {
			keep[objects.ResourceIndex(s)] = true
		}
	}
	if len(complete) == 0 {
		return nil
	}
	slices.Sort(complete)
	for _, index := range complete[max(0, len(complete)-limit):] {
		keep[index] = true
	}
	newest := complete[len(complete)-1]
	var old []*metav1.PartialObjectMetadata
	for _, s := range snapshots {
		if index := objects.ResourceIndex(s); !keep[index] && index < newest {
			old = append(old, s)
		}
	}
	return old
}
