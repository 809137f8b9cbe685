// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// testers is the group of all authors.
const testers = "testers"

// access is a request to the hub.
type access struct{ verb, group, resource, namespace, name string }

func (a access) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s", a.verb, a.resource, a.group, a.namespace, a.name)
}

// accesses returns what a user needs to write an object on the hub in a scope: the namespace, empty for
// the whole cluster. A kind that the hub does not serve needs its whole group in all namespaces.
func accesses(verb string, o object, namespace string) []access {
	if reserved.ChecksWriter(o.kind.GroupKind()) {
		return []access{{verb, "*", "*", "", ""}}
	}
	if o.kind.onHub == "" {
		return []access{{verb, o.kind.Group, "*", "", ""}}
	}
	all := []access{{verb, o.kind.Group, o.kind.resource, namespace, o.name}}
	switch {
	case o.isBinding():
		return append(all, access{"bind", rbacv1.GroupName, strings.ToLower(o.role.Kind) + "s", namespace, o.role.Name})
	case o.kind.Group == rbacv1.GroupName:
		return append(all, access{"escalate", o.kind.Group, o.kind.resource, namespace, o.name})
	}
	return all
}

// writing returns what a user needs for an object that members get, which may exist there.
func writing(o object, namespace string) []access {
	return append(accesses("create", o, namespace), accesses("update", o, namespace)...)
}

// oracle asks the hub's API server, and caches its answers.
type oracle struct{ known map[string]bool }

// may is true for the administrator, and for a user to whom RBAC grants the access.
func (r *oracle) may(ctx context.Context, user string, a access) (bool, error) {
	if user == administrator {
		return true, nil
	}
	key := user + " " + a.String()
	if allowed, ok := r.known[key]; ok {
		return allowed, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{testers, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: a.verb, Group: a.group, Resource: a.resource, Namespace: a.namespace, Name: a.name},
	}}
	if err := hub.Create(ctx, review); err != nil {
		return false, err
	}
	r.known[key] = review.Status.Allowed
	return review.Status.Allowed, nil
}

// mayByName is the same for a verb of fleetgate, which "*" in a namespace does not grant.
func (r *oracle) mayByName(ctx context.Context, user string, a access) (bool, error) {
	allowed, err := r.may(ctx, user, a)
	if err != nil || !allowed || a.namespace == "" {
		return allowed, err
	}
	wildcard := a
	wildcard.verb = "unknown-verb"
	if any, err := r.may(ctx, user, wildcard); err != nil || !any {
		return !any, err
	}
	a.namespace = ""
	return r.may(ctx, user, a)
}

// mayAll is true if the user has each of the accesses.
func (r *oracle) mayAll(ctx context.Context, user string, all []access) (bool, error) {
	for _, a := range all {
		if allowed, err := r.may(ctx, user, a); err != nil || !allowed {
			return false, err
		}
	}
	return true, nil
}

// mayDeliver is true if the user may read an object of the hub, by itself or with all others of its
// kind, or place it.
func (r *oracle) mayDeliver(ctx context.Context, user string, o object) (bool, error) {
	a := access{"get", o.kind.Group, o.kind.resource, o.namespace, o.name}
	if allowed, err := r.may(ctx, user, a); err != nil || allowed {
		return allowed, err
	}
	a.verb = "place"
	if allowed, err := r.mayByName(ctx, user, a); err != nil || allowed {
		return allowed, err
	}
	a.verb, a.name = "list", ""
	return r.may(ctx, user, a)
}

// violation returns why an object must not be on the member, or "".
func (r *oracle) violation(ctx context.Context, t *attempt, live *unstructured.Unstructured) (string, error) {
	o, from := observed(live), live.GetAnnotations()[by]
	entered := o
	if live.GetLabels()[overridden] != "" && o.isBinding() {
		// The override replaced the role, for which its author needs the right to bind any role.
		for _, entry := range t.entries {
			if entry.kind.Kind == o.kind.Kind && entry.namespace == o.namespace && entry.name == o.name {
				entered.role = entry.role
			}
		}
	}
	if from == "" {
		from = fromHub // Roles and bindings of the authors, and namespaces.
	}
	author, may, err := t.author, false, error(nil)
	switch from {
	case fromHub:
		author = t.placer
		may, err = r.mayDeliver(ctx, t.placer, o)
	case fromEnvelope:
		may, err = r.mayAll(ctx, t.author, writing(entered, o.namespace))
	case fromChart, fromOverride:
		if from == fromOverride {
			author = t.overrider
		}
		may, err = r.mayByName(ctx, author, t.rendering())
	case fromSet:
		if !t.bound {
			return "no ManagedClusterSet is bound to the namespace", nil
		}
		if may, err = r.may(ctx, t.author, executing); err == nil && !(may && t.executed) {
			may, err = r.mayAll(ctx, t.author, writing(entered, o.namespace))
		}
	default:
		return "its annotation names no known origin", nil
	}
	if err != nil || !may {
		return fmt.Sprintf("%q has no right to it, which comes from the %s", author, from), err
	}
	if from == fromEnvelope || from == fromChart || from == fromOverride {
		if may, err = r.mayDeliver(ctx, t.placer, t.bundle); err != nil || !may {
			return fmt.Sprintf("%q has no right to deliver %s", t.placer, t.bundle), err
		}
	}
	if live.GetLabels()[overridden] != "" {
		if may, err = r.mayAll(ctx, t.overrider, accesses("update", o, o.namespace)); err != nil || !may {
			return fmt.Sprintf("%q has no right to override it", t.overrider), err
		}
	}
	return "", nil
}

// writes records each state of each object of the pool that the agent wrote on the member.
type writes struct {
	cancel context.CancelFunc
	wait   func()

	mu sync.Mutex
	// guarded by mu: by the prefix of the attempt
	seen map[string][]*unstructured.Unstructured
}

func recordWrites(from dynamic.Interface) *writes {
	ctx, cancel := context.WithCancel(context.Background())
	factory := dynamicinformer.NewDynamicSharedInformerFactory(from, 0)
	w := &writes{cancel: cancel, wait: factory.Shutdown, seen: map[string][]*unstructured.Unstructured{}}
	for _, k := range pool {
		informer := factory.ForResource(k.GroupVersion().WithResource(k.resource)).Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: w.record, UpdateFunc: func(_, newer any) { w.record(newer) },
		}); err != nil {
			panic(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return w
}

func (w *writes) stop() {
	w.cancel()
	w.wait()
}

// record keeps an object that the agent wrote, and none that the suite or a controller wrote.
func (w *writes) record(o any) {
	live, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	owned := slices.ContainsFunc(live.GetOwnerReferences(), isRecord)
	_, marked := live.GetAnnotations()[by]
	prefix := prefixOf(live.GetName())
	if prefix == "" {
		prefix = prefixOf(live.GetNamespace())
	}
	if prefix == "" || !owned && !marked {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[prefix] = append(w.seen[prefix], live)
}

// of returns what was written for an attempt.
func (w *writes) of(prefix string) []*unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen[prefix])
}
