// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/singleflight"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// maxGroupSize limits the number of snapshots that a group can declare.
const maxGroupSize = 1000

// ErrIncomplete is returned for a snapshot that is not the master of a group.
var ErrIncomplete = errors.New("not the master of a complete group of resource snapshots")

// Group is a group of resource snapshots, the master first.
type Group struct {
	// Index is the value of the group's index label.
	Index string
	// Parts are the snapshots' contents in order, each followed by the contents of its envelopes.
	Parts []Part
	// Resources names everything that was selected: an envelope, not its contents.
	Resources []placementv1beta1.ResourceIdentifier
	// Fault is the reason why an envelope could not be opened, or nil; then Parts lacks it.
	Fault error

	size int
}

// Part is the content of one snapshot without its envelopes, or of one envelope.
type Part struct {
	// Snapshot is the name of the snapshot.
	Snapshot string
	// Envelope is nil for contents of the snapshot itself.
	Envelope *placementv1beta1.EnvelopeIdentifier
	// Chart is true if the only manifest is the object that describes a chart, which has to be rendered
	// for each member.
	Chart     bool
	Manifests []placementv1beta1.Manifest
	// Resources names each of the manifests.
	Resources []placementv1beta1.ResourceIdentifier
	// Hash is Hash(Manifests).
	Hash string
}

// Reader reads the contents of resource snapshots, as [Contents] does.
type Reader interface {
	Group(ctx context.Context, master types.NamespacedName) (*Group, error)
}

// Contents reads groups of resource snapshots. Because snapshots never change, it caches the groups
// that were read last. Callers must not change the results.
type Contents struct {
	// metadata shows whether the snapshot is still the cached one.
	metadata  client.Reader
	live      client.Reader
	envelopes Envelopes
	reading   singleflight.Group
	recent    recentGroups
}

// NewContents returns Contents that read metadata with one reader, a cache, and full snapshots with
// another.
func NewContents(metadata, live client.Reader, envelopes Envelopes) *Contents {
	return &Contents{metadata: metadata, live: live, envelopes: envelopes, recent: recentGroups{groups: map[types.UID]*Group{}}}
}

// Group returns the group of a master. The error is NotFound if the master or a part of the group is
// deleted.
func (c *Contents) Group(ctx context.Context, master types.NamespacedName) (*Group, error) {
	known := objects.ResourceSnapshotMetadata(master.Namespace)
	if err := c.metadata.Get(ctx, master, known); err == nil {
		if group := c.recent.get(known.UID); group != nil {
			return group, nil
		}
	}
	group, err, _ := c.reading.Do(master.String(), func() (any, error) { return c.read(ctx, master) })
	if err != nil {
		return nil, err
	}
	return group.(*Group), nil
}

func (c *Contents) read(ctx context.Context, key types.NamespacedName) (*Group, error) {
	master, err := c.snapshot(ctx, key)
	if err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(master.GetAnnotations()[placementv1beta1.NumberOfResourceSnapshotsAnnotation])
	if err != nil || count < 1 || count > maxGroupSize || !objects.IsMaster(master) {
		return nil, fmt.Errorf("resource snapshot %q: %w", klog.KRef(key.Namespace, key.Name), ErrIncomplete)
	}
	group := &Group{Index: master.GetLabels()[placementv1beta1.ResourceIndexLabel]}
	if err := group.add(master, c.envelopes); err != nil {
		return nil, err
	}
	for i := range count - 1 {
		name := placementv1beta1.ResourceSubSnapshotName(master.GetLabels()[placementv1beta1.ParentPlacementLabel], objects.ResourceIndex(master), i)
		part, err := c.snapshot(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name})
		if err != nil {
			return nil, err
		}
		if err := group.add(part, c.envelopes); err != nil {
			return nil, err
		}
	}
	c.recent.add(master.GetUID(), group)
	return group, nil
}

func (c *Contents) snapshot(ctx context.Context, key types.NamespacedName) (placementv1beta1.ResourceSnapshotObject, error) {
	s := objects.NewResourceSnapshot(key.Namespace)
	if err := c.live.Get(ctx, key, s); err != nil {
		return nil, fmt.Errorf("reading resource snapshot %q: %w", klog.KRef(key.Namespace, key.Name), err)
	}
	return s, nil
}

// Objects names everything that a member gets.
func (g *Group) Objects() []placementv1beta1.ResourceIdentifier {
	var all []placementv1beta1.ResourceIdentifier
	for _, part := range g.Parts {
		all = append(all, part.Resources...)
	}
	return all
}
