// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// historyLength is how many changes a watch may be behind before it has to list again.
const historyLength = 1024

// Informer is the part of a shared informer that an Inventory needs. Informers of client-go and of
// controller-runtime's cache implement it.
type Informer interface {
	AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error
}

// credentialAt says whether the Secret with the gateway's credential exists, and at which
// resourceVersion that was so.
type credentialAt struct {
	present bool
	version uint64
}

// state is everything that a ClusterGateway is computed from.
type state struct {
	member     *clusterv1beta1.MemberCluster
	credential credentialAt
}

// version is the larger of the two, so that all replicas report the same version.
func (s state) version() uint64 { return max(versionOf(s.member), s.credential.version) }

// change is one change of the inventory: old has no member if it is new, now has none if it is
// deleted.
type change struct {
	old, now state
	// version is at least that of every earlier change. MemberClusters and Secrets have separate
	// watches, so a change may arrive late. It is then also sent to watchers that already have that
	// version, because otherwise nobody would see it.
	version uint64
	late    bool
}

// Inventory holds the members: the state that an informer delivered and the last changes, so that
// clients can list and then watch without a gap. The objects are shared and must not be changed.
type Inventory struct {
	// mu guards all following fields. It is held while watchers are notified, so that each sees
	// changes in order.
	mu          sync.Mutex
	byName      map[string]*clusterv1beta1.MemberCluster
	credentials map[string]credentialAt
	history     []change
	// version is the largest resourceVersion seen; a watch can begin at floor or later.
	version, floor uint64
	watchers       map[*memberWatch]struct{}
	gone           []func(member string)
}

// NewInventory returns an inventory without members.
func NewInventory() *Inventory {
	return &Inventory{
		byName:      map[string]*clusterv1beta1.MemberCluster{},
		credentials: map[string]credentialAt{},
		watchers:    map[*memberWatch]struct{}{},
	}
}

// Follow fills the inventory from an informer of MemberClusters until stop is called. synced is
// true once the first list is complete.
func (m *Inventory) Follow(informer Informer) (synced func() bool, stop func() error, err error) {
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { m.set(obj, initial) },
		UpdateFunc: func(_, obj any) { m.set(obj, false) },
		DeleteFunc: m.remove,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("following MemberClusters: %w", err)
	}
	return handle.HasSynced, func() error { return informer.RemoveEventHandler(handle) }, nil
}

// Get returns a member by name.
func (m *Inventory) Get(name string) (*clusterv1beta1.MemberCluster, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	member, ok := m.byName[name]
	return member, ok
}

// List returns all members sorted by name, and the resourceVersion from which a watch sees the next
// changes.
func (m *Inventory) List() ([]*clusterv1beta1.MemberCluster, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sorted(), strconv.FormatUint(m.version, 10)
}

// SetCredential records that the Secret with the gateway's credential for a member was created,
// changed or deleted, with its resourceVersion. A credential may come before its member. Watches
// cannot report the initial Secrets of a first list.
func (m *Inventory) SetCredential(name string, present bool, resourceVersion string, initial bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := credentialAt{present: present, version: parseVersion(resourceVersion)}
	before := m.credentials[name]
	if now.version <= before.version && now.present == before.present {
		return
	}
	m.credentials[name] = now
	m.version = max(m.version, now.version)
	if initial {
		defer m.beginHere()
	}
	if member, ok := m.byName[name]; ok {
		m.tell(change{old: state{member, before}, now: state{member, now}, version: now.version})
	} else if !present {
		delete(m.credentials, name)
	}
}

// OnGone registers f, which is called after a member is deleted. f must not block.
func (m *Inventory) OnGone(f func(member string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = append(m.gone, f)
}

// get is Get with the state of the credential.
func (m *Inventory) get(name string) (state, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	member, ok := m.byName[name]
	return state{member, m.credentials[name]}, ok
}

// list is List with the state of the credentials.
func (m *Inventory) list() ([]state, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.states(), strconv.FormatUint(m.version, 10)
}

// states is called with mu held.
func (m *Inventory) states() []state {
	all := make([]state, 0, len(m.byName))
	for _, member := range m.sorted() {
		all = append(all, state{member, m.credentials[member.Name]})
	}
	return all
}

func (m *Inventory) sorted() []*clusterv1beta1.MemberCluster {
	all := make([]*clusterv1beta1.MemberCluster, 0, len(m.byName))
	for _, member := range m.byName {
		all = append(all, member)
	}
	slices.SortFunc(all, func(a, b *clusterv1beta1.MemberCluster) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (m *Inventory) set(obj any, initial bool) {
	member, ok := obj.(*clusterv1beta1.MemberCluster)
	if !ok {
		return
	}
	version := versionOf(member)
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.byName[member.Name]
	if old != nil && old.ResourceVersion == member.ResourceVersion && old.UID == member.UID {
		return
	}
	m.byName[member.Name] = member
	m.version = max(m.version, version)
	if initial {
		defer m.beginHere()
	}
	credential := m.credentials[member.Name]
	m.tell(change{old: state{old, credential}, now: state{member, credential}, version: version})
}

func (m *Inventory) remove(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	member, ok := obj.(*clusterv1beta1.MemberCluster)
	if !ok {
		return
	}
	m.mu.Lock()
	delete(m.byName, member.Name)
	m.version = max(m.version, versionOf(member))
	credential := m.credentials[member.Name]
	if !credential.present {
		delete(m.credentials, member.Name)
	}
	m.tell(change{old: state{member, credential}, version: versionOf(member)})
	gone := slices.Clone(m.gone)
	m.mu.Unlock()
	for _, f := range gone {
		f(member.Name)
	}
}

// beginHere drops the history, because a watch cannot report changes from before a first list. It
// is called with mu held.
func (m *Inventory) beginHere() { m.floor, m.history = m.version, nil }

// tell is called with mu held.
func (m *Inventory) tell(c change) {
	c.late = c.version < m.version
	c.version = max(c.version, m.version)
	m.history = append(m.history, c)
	if excess := len(m.history) - historyLength; excess > 0 {
		m.floor = max(m.floor, m.history[excess-1].version)
		m.history = slices.Clone(m.history[excess:])
	}
	for w := range m.watchers {
		if !w.send(c) {
			m.drop(w)
		}
	}
}

// drop is called with mu held.
func (m *Inventory) drop(w *memberWatch) {
	if _, ok := m.watchers[w]; ok {
		delete(m.watchers, w)
		close(w.events)
	}
}

func versionOf(member *clusterv1beta1.MemberCluster) uint64 {
	return parseVersion(member.ResourceVersion)
}

func parseVersion(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}
