// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

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
	// current is replaced with every change, so that requests do not wait for mu.
	current atomic.Pointer[inventory]

	// mu guards all following fields. It is held while watchers are notified, so that each sees
	// changes in order.
	mu          sync.Mutex
	credentials map[string]credentialAt
	history     []change
	// version is the largest resourceVersion seen; a watch can begin at floor or later.
	version, floor uint64
	watchers       map[*memberWatch]struct{}
	gone           []func(member string)
}

// inventory is the inventory at one moment: the members by name. It is never changed.
type inventory struct {
	members []*clusterv1beta1.MemberCluster
	version uint64
}

func (i *inventory) find(name string) (int, bool) {
	return slices.BinarySearchFunc(i.members, name, func(m *clusterv1beta1.MemberCluster, name string) int { return strings.Compare(m.Name, name) })
}

// NewInventory returns an inventory without members.
func NewInventory() *Inventory {
	m := &Inventory{
		credentials: map[string]credentialAt{},
		watchers:    map[*memberWatch]struct{}{},
	}
	m.current.Store(&inventory{})
	return m
}

// publish is called with mu held. The members must not be changed afterwards.
func (m *Inventory) publish(members []*clusterv1beta1.MemberCluster) {
	m.current.Store(&inventory{members: members, version: m.version})
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
	now := m.current.Load()
	at, ok := now.find(name)
	if !ok {
		return nil, false
	}
	return now.members[at], true
}

// List returns all members sorted by name, and the resourceVersion from which a watch sees the next
// changes. The slice must not be changed.
func (m *Inventory) List() ([]*clusterv1beta1.MemberCluster, string) {
	now := m.current.Load()
	return now.members, strconv.FormatUint(now.version, 10)
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
	m.publish(m.current.Load().members)
	if initial {
		defer m.beginHere()
	}
	if member, ok := m.Get(name); ok {
		m.notify(change{old: state{member, before}, now: state{member, now}, version: now.version})
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
	member, ok := m.Get(name)
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
	members := m.current.Load().members
	all := make([]state, 0, len(members))
	for _, member := range members {
		all = append(all, state{member, m.credentials[member.Name]})
	}
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
	old, _ := m.Get(member.Name)
	if old != nil && old.ResourceVersion == member.ResourceVersion && old.UID == member.UID {
		return
	}
	m.version = max(m.version, version)
	now := m.current.Load()
	members := slices.Clone(now.members)
	if at, exists := now.find(member.Name); exists {
		members[at] = member
	} else {
		members = slices.Insert(members, at, member)
	}
	m.publish(members)
	if initial {
		defer m.beginHere()
	}
	credential := m.credentials[member.Name]
	m.notify(change{old: state{old, credential}, now: state{member, credential}, version: version})
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
	m.version = max(m.version, versionOf(member))
	now := m.current.Load()
	members := slices.Clone(now.members)
	if at, exists := now.find(member.Name); exists {
		members = slices.Delete(members, at, at+1)
	}
	m.publish(members)
	credential := m.credentials[member.Name]
	if !credential.present {
		delete(m.credentials, member.Name)
	}
	m.notify(change{old: state{member, credential}, version: versionOf(member)})
	gone := slices.Clone(m.gone)
	m.mu.Unlock()
	for _, f := range gone {
		f(member.Name)
	}
}

// beginHere drops the history, because a watch cannot report changes from before a first list. It
// is called with mu held.
func (m *Inventory) beginHere() { m.floor, m.history = m.version, nil }

// notify is called with mu held.
func (m *Inventory) notify(c change) {
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
