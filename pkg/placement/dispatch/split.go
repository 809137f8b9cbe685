// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
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

// split divides parts whose Works would be too large for their status, which has an entry for each
// manifest. Snapshots are limited in bytes only: 800 KiB of small objects would have a status of
// several megabytes, which no agent could write. Parts that fit stay undivided, because another
// division would move objects between Works.
func split(group *snapshot.Group) (*snapshot.Group, error) {
	cut := &snapshot.Group{Index: group.Index, Resources: group.Resources}
	for _, part := range group.Parts {
		pieces := piecesOf(part.Manifests)
		if len(pieces) < 2 {
			cut.Parts = append(cut.Parts, part)
			continue
		}
		for i, manifests := range pieces {
			piece := part
			piece.Piece, piece.Manifests, piece.Resources = i, manifests, nil
			var err error
			if piece.Hash, err = snapshot.Hash(manifests); err != nil {
				return nil, err
			}
			cut.Parts = append(cut.Parts, piece)
		}
	}
	if len(cut.Parts) == len(group.Parts) {
		return group, nil
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
