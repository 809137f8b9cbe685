// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/singleflight"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// memory is the size of manifests that Contents caches, in bytes.
const memory = 64 << 20

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
	// Piece is the number, from 0, of a part that was divided because its Works would be too large.
	Piece int
}

// Hash is a hash of a list of manifests. The API server may return a manifest in another encoding than
// it got; the hash is the same.
func Hash(manifests []placementv1beta1.Manifest) (string, error) {
	sum := sha256.New()
	for i, m := range manifests {
		var value any
		if err := utiljson.Unmarshal(m.Raw, &value); err != nil {
			return "", fmt.Errorf("decoding manifest %d: %w", i, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return "", fmt.Errorf("encoding manifest %d: %w", i, err)
		}
		sum.Write(append(text, '\n'))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Contents reads groups of resource snapshots. Because snapshots never change, it caches the groups
// that were read last. Callers must not change the results.
type Contents struct {
	// metadata shows whether the snapshot is still the cached one.
	metadata  client.Reader
	live      client.Reader
	envelopes Envelopes
	reading   singleflight.Group

	// mu guards the fields below.
	mu     sync.Mutex
	groups map[types.UID]*Group
	order  []types.UID
	size   int
}

// NewContents returns Contents that read metadata with one reader, a cache, and full snapshots with
// another.
func NewContents(metadata, live client.Reader, envelopes Envelopes) *Contents {
	return &Contents{metadata: metadata, live: live, envelopes: envelopes, groups: map[types.UID]*Group{}}
}

// Group returns the group of a master. The error is NotFound if the master or a part of the group is
// deleted.
func (c *Contents) Group(ctx context.Context, master types.NamespacedName) (*Group, error) {
	known := objects.ResourceSnapshotMetadata(master.Namespace)
	if err := c.metadata.Get(ctx, master, known); err == nil {
		if group := c.remembered(known.UID); group != nil {
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
	c.remember(master.GetUID(), group)
	return group, nil
}

func (c *Contents) snapshot(ctx context.Context, key types.NamespacedName) (placementv1beta1.ResourceSnapshotObject, error) {
	s := objects.NewResourceSnapshot(key.Namespace)
	if err := c.live.Get(ctx, key, s); err != nil {
		return nil, fmt.Errorf("reading resource snapshot %q: %w", klog.KRef(key.Namespace, key.Name), err)
	}
	return s, nil
}

func (g *Group) add(s placementv1beta1.ResourceSnapshotObject, envelopes Envelopes) error {
	part := Part{Snapshot: s.GetName()}
	var opened []Part
	for i, m := range s.GetSpec().SelectedResources {
		id, err := Identify(m.Raw)
		if err != nil {
			return fmt.Errorf("resource %d of resource snapshot %q: %w", i, s.GetName(), err)
		}
		g.Resources = append(g.Resources, id)
		g.size += len(m.Raw)
		t := envelopes.typeOf(m.Raw, id)
		if t == "" {
			part.Manifests, part.Resources = append(part.Manifests, m), append(part.Resources, id)
			continue
		}
		var inside Part
		if envelopes.isChart(m.Raw, id) {
			inside, err = unrendered(m, id, t)
		} else {
			inside, err = openEnvelope(m.Raw, id, t)
		}
		if err != nil {
			g.Fault = errors.Join(g.Fault, fmt.Errorf("%s %q: %w", id.Kind, klog.KRef(id.Namespace, id.Name), err))
			continue
		}
		inside.Snapshot = s.GetName()
		opened = append(opened, inside)
	}
	var err error
	if part.Hash, err = Hash(part.Manifests); err != nil {
		return fmt.Errorf("resource snapshot %q: %w", s.GetName(), err)
	}
	g.Parts = append(append(g.Parts, part), opened...)
	return nil
}

// Objects names everything that a member gets.
func (g *Group) Objects() []placementv1beta1.ResourceIdentifier {
	var all []placementv1beta1.ResourceIdentifier
	for _, part := range g.Parts {
		all = append(all, part.Resources...)
	}
	return all
}

// Identify names the object of a manifest. Missing fields are empty. Field names are compared exactly,
// as API servers do: encoding/json also accepts "Kind" for kind, and "name\u017fpace" for namespace,
// which are other fields.
func Identify(raw []byte) (placementv1beta1.ResourceIdentifier, error) {
	var object metav1.PartialObjectMetadata
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return placementv1beta1.ResourceIdentifier{}, fmt.Errorf("decoding: %w", err)
	}
	gvk := object.GroupVersionKind()
	return placementv1beta1.ResourceIdentifier{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: object.Name, Namespace: object.Namespace,
	}, nil
}

func (c *Contents) remembered(uid types.UID) *Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[uid]
}

// remember caches the group and drops the oldest ones while there are too many bytes. It keeps at least
// one group of any size.
func (c *Contents) remember(uid types.UID, group *Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, again := c.groups[uid]; again {
		return
	}
	c.groups[uid] = group
	c.order = append(c.order, uid)
	c.size += group.size
	for c.size > memory && len(c.order) > 1 {
		c.size -= c.groups[c.order[0]].size
		delete(c.groups, c.order[0])
		c.order = c.order[1:]
	}
}
