// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/listget"
)

const (
	// guardPage is how many objects a guard reads at once.
	guardPage = 500
	// guardPages limits the number of pages.
	guardPages = 20
	// guardAttempts is how often a guard retries after a conflict with another replica; the
	// request's own time limit ends it earlier.
	guardAttempts = 64
)

type compiledGuard struct {
	admissionv1alpha1.Guard
	counted plugincel.ConditionEvaluator
	allowed []plugincel.ConditionEvaluator
}

func (b *build) guards(compiled *Compiled) {
	for i, guard := range compiled.policy.Spec.Guards {
		source := field.NewPath("spec", "guards").Index(i)
		out := compiledGuard{Guard: guard, counted: b.optional(source.Child("countedWhen"), guard.CountedWhen, cel.BoolType)}
		for j, allow := range guard.AllowWhen {
			out.allowed = append(out.allowed, b.optional(source.Child("allowWhen").Index(j), allow, cel.BoolType))
		}
		compiled.guards = append(compiled.guards, out)
	}
}

// errBusy is the result of a guard that could not decide in time. It is a denial: to allow requests
// that were not counted would allow deletion of the last objects.
var errBusy = errors.New("other deletions are being decided: try again")

// guardkeeper checks guards, and reserves the deletions that they allow.
type guardkeeper struct {
	reader       client.Reader
	reservations *reservations
	// turns serialize the requests of one replica by their Lease. Concurrent ones would conflict
	// and have to read and count again.
	turns [64]chan struct{}
}

func newGuardkeeper(reader client.Reader, kept *reservations) *guardkeeper {
	k := &guardkeeper{reader: reader, reservations: kept}
	for i := range k.turns {
		k.turns[i] = make(chan struct{}, 1)
	}
	return k
}

// take waits for a turn, and returns the function that ends it.
func (k *guardkeeper) take(ctx context.Context, lease string) (func(), error) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(lease))
	turn := k.turns[hash.Sum32()%uint32(len(k.turns))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// check returns the violations of the policy's guards. Only with reserve do the deletions that they
// allow count afterwards.
func (k *guardkeeper) check(ctx context.Context, c *Compiled, request *Request, around surroundings, reserve bool) ([]Violation, error) {
	var violations []Violation
	for i := range c.guards {
		guard := &c.guards[i]
		violation, err := k.checkGuard(ctx, c, guard, request, around, reserve)
		if err != nil {
			return violations, fmt.Errorf("policy %s, guard %s: %w", c.policy.Name, guard.Name, err)
		}
		if violation != nil {
			violations = append(violations, *violation)
		}
	}
	return violations, nil
}

func (k *guardkeeper) checkGuard(ctx context.Context, c *Compiled, guard *compiledGuard, request *Request, around surroundings, reserve bool) (*Violation, error) {
	concerned, err := guard.concerns(ctx, request, around)
	if err != nil || !concerned {
		return nil, err
	}
	for _, allow := range guard.allowed {
		value, err := one(ctx, allow, request, around)
		if err != nil {
			return nil, err
		}
		if value == true {
			return nil, nil
		}
	}
	if ending, err := k.namespaceEnds(ctx, request.namespace); err != nil || ending {
		return nil, err
	}
	lease := guard.lease(c.policy.Name, request)
	done, err := k.take(ctx, lease)
	if err != nil {
		return nil, err
	}
	defer done()
	for range guardAttempts {
		violation, err := k.decide(ctx, c, guard, request, around, lease, reserve)
		if ctx.Err() != nil {
			return nil, errBusy
		}
		if !apierrors.IsConflict(err) {
			return violation, err
		}
	}
	return nil, errBusy
}

// lease is the name of the Lease for the group of objects that are counted together.
func (g *compiledGuard) lease(policy string, request *Request) string {
	return leaseName(policy, g.Name, g.namespace(request), request.oldObject.GetLabels()[g.label()])
}

func (g *compiledGuard) namespace(request *Request) string {
	if g.Scope == nil || !g.Scope.SameNamespace {
		return ""
	}
	return request.namespace
}

// concerns is true if the request removes an object that counts.
func (g *compiledGuard) concerns(ctx context.Context, request *Request, around surroundings) (bool, error) {
	old := request.oldObject
	if old == nil || old.GetDeletionTimestamp() != nil || !slices.Contains(g.Operations, admissionv1alpha1.GuardedOperation(request.operation)) {
		return false, nil
	}
	if label := g.label(); label != "" {
		if _, ok := old.GetLabels()[label]; !ok {
			return false, nil
		}
	}
	counted, err := g.counts(ctx, request, around, old)
	if err != nil || !counted || request.operation == admissionv1.Delete {
		return counted, err
	}
	stays, err := g.counts(ctx, request, around, request.object)
	if label := g.label(); label != "" && request.object.GetLabels()[label] != old.GetLabels()[label] {
		stays = false
	}
	return !stays, err
}

func (g *compiledGuard) label() string {
	if g.Scope == nil {
		return ""
	}
	return g.Scope.SameLabel
}

func (g *compiledGuard) counts(ctx context.Context, request *Request, around surroundings, object *unstructured.Unstructured) (bool, error) {
	if g.counted == nil {
		return true, nil
	}
	value, err := one(ctx, g.counted, request.about(object), around)
	return value == true, err
}

// decide counts the objects that would remain. It reads the reservations before the objects, and
// writes them only if they have not changed: concurrent requests see each other.
func (k *guardkeeper) decide(ctx context.Context, c *Compiled, guard *compiledGuard, request *Request, around surroundings, lease string, reserve bool) (*Violation, error) {
	booked, err := k.reservations.read(ctx, lease)
	if err != nil {
		return nil, err
	}
	needed := int(max(guard.MinRemaining, 1))
	remaining, err := k.remaining(ctx, guard, request, around, booked, needed)
	if err != nil {
		return nil, err
	}
	if remaining < needed {
		return &Violation{Path: "metadata.name", Message: guard.text(needed)}, nil
	}
	if !reserve {
		return nil, nil
	}
	if there, err := k.there(ctx, guard, request); err != nil || !there {
		return nil, err
	}
	return nil, k.reservations.reserve(ctx, booked, c.policy.Name, request.oldObject)
}

func (g *compiledGuard) text(needed int) string {
	if g.Message != "" {
		return g.Message
	}
	return fmt.Sprintf("%s: at least %d must remain", g.Name, needed)
}

// remaining counts the other objects, up to enough. It leaves out objects that are being deleted,
// and those whose deletion is reserved.
func (k *guardkeeper) remaining(ctx context.Context, guard *compiledGuard, request *Request, around surroundings, l *guardLease, enough int) (int, error) {
	options := []client.ListOption{client.InNamespace(guard.namespace(request)), client.Limit(guardPage)}
	if label := guard.label(); label != "" {
		options = append(options, client.MatchingLabels{label: request.oldObject.GetLabels()[label]})
	}
	count, next := 0, ""
	for range guardPages {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(request.kind.GroupVersion().WithKind(request.kind.Kind + "List"))
		if err := k.reader.List(ctx, page, append(options, client.Continue(next))...); err != nil {
			return 0, fmt.Errorf("counting objects of kind %s: %w", request.kind.Kind, err)
		}
		for i := range page.Items {
			other := &page.Items[i]
			if other.GetUID() == request.oldObject.GetUID() || other.GetDeletionTimestamp() != nil || l.gone(other.GetUID()) {
				continue
			}
			counted, err := guard.counts(ctx, request, around, other)
			if err != nil {
				return 0, err
			}
			if counted {
				count++
			}
			if count >= enough {
				return count, nil
			}
		}
		if next = page.GetContinue(); next == "" {
			return count, nil
		}
	}
	return 0, fmt.Errorf("there are more than %d objects of kind %s", guardPage*guardPages, request.kind.Kind)
}

// there is true if the object exists as the request describes it: with this UID, in this group of
// objects, and not being deleted yet. The API server sends only such requests, but a forged one
// must not count as a deletion. It lists instead of getting, so that guarding a kind needs no
// further permission.
func (k *guardkeeper) there(ctx context.Context, guard *compiledGuard, request *Request) (bool, error) {
	claimed := request.oldObject
	found, err := listget.Get(ctx, listget.Through(k.reader, request.kind, request.namespace), request.resource, client.ObjectKeyFromObject(claimed), "")
	switch {
	case ignoreAbsent(err) != nil:
		return false, fmt.Errorf("reading the object to be deleted: %w", err)
	case err != nil:
		//lint:ignore nilerr It is not there: that is an answer.
		return false, nil
	}
	return found.GetUID() == claimed.GetUID() && found.GetDeletionTimestamp() == nil && found.GetLabels()[guard.label()] == claimed.GetLabels()[guard.label()], nil
}

// namespaceEnds is true if the namespace, and everything in it, is being deleted. It is read live:
// the namespace controller starts to delete as soon as it is marked.
func (k *guardkeeper) namespaceEnds(ctx context.Context, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	var namespace corev1.Namespace
	if err := k.reader.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return namespace.DeletionTimestamp != nil, nil
}
