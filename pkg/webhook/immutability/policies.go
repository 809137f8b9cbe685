// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// Policies are the policies that this replica serves, each compiled once per generation.
type Policies struct {
	compiler *Compiler

	mu     sync.RWMutex
	known  map[string]entry
	synced func() bool
}

// An entry is one policy, compiled or not.
type entry struct {
	uid        types.UID
	generation int64
	compiled   *Compiled
	problems   field.ErrorList
}

// NewPolicies returns a set without policies.
func NewPolicies(compiler *Compiler) *Policies {
	return &Policies{compiler: compiler, known: map[string]entry{}, synced: func() bool { return false }}
}

// An Informer delivers ImmutabilityPolicies, and reports when it has delivered the initial ones.
// Informers of controller-runtime and client-go implement it.
type Informer interface {
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
}

// Follow serves the policies that the informer delivers.
func (p *Policies) Follow(informer Informer) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    p.set,
		UpdateFunc: func(_, object any) { p.set(object) },
		DeleteFunc: p.remove,
	})
	if err != nil {
		return fmt.Errorf("watching ImmutabilityPolicies: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced = registration.HasSynced
	return nil
}

// Synced is true once every initial policy is served.
func (p *Policies) Synced() bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.synced()
}

// get returns a policy; known is false if there is none of that name.
func (p *Policies) get(name string) (found entry, known bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	found, known = p.known[name]
	return found, known
}

func (p *Policies) set(object any) {
	policy, ok := object.(*admissionv1alpha1.ImmutabilityPolicy)
	if !ok {
		return
	}
	p.ensure(policy)
}

// ensure returns the served policy, and compiles it if its generation is new.
func (p *Policies) ensure(policy *admissionv1alpha1.ImmutabilityPolicy) entry {
	if current, ok := p.get(policy.Name); ok && current.uid == policy.UID && current.generation >= policy.Generation {
		return current
	}
	compiled, problems := p.compiler.Compile(policy, false)
	next := entry{uid: policy.UID, generation: policy.Generation, compiled: compiled, problems: problems}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[policy.Name] = next
	return next
}

func (p *Policies) remove(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	policy, ok := object.(*admissionv1alpha1.ImmutabilityPolicy)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[policy.Name].uid == policy.UID {
		delete(p.known, policy.Name)
	}
}
