// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/listget"
)

// maxListed is how many objects a lookup of a list reads.
const maxListed = 500

// anyVersion as a lookup's version means the version that the hub prefers.
const anyVersion = "*"

// absentFor is how long the absence of a kind on the hub is cached. A mapper reads discovery for
// every unknown kind, which costs more than the rest of a review.
const absentFor = 5 * time.Second

// A finder reads the hub for lookups.
type finder struct {
	reader client.Reader
	mapper meta.RESTMapper
	// absent are the kinds that the hub does not serve, refused those that the gateway has no
	// permission to get.
	absent, refused *absences
}

// absences cache kinds whose lookups failed recently.
type absences struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	until map[schema.GroupVersionKind]time.Time
}

func newAbsences(clock clock.PassiveClock) *absences {
	return &absences{clock: clock, until: map[schema.GroupVersionKind]time.Time{}}
}

func (a *absences) has(kind schema.GroupVersionKind) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.clock.Now().Before(a.until[kind])
}

func (a *absences) add(kind schema.GroupVersionKind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until[kind] = a.clock.Now().Add(absentFor)
}

// served returns how the hub serves the kind, in its version; nil if it does not.
func (f finder) served(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if f.absent.has(kind) {
		return nil, nil
	}
	mapping, err := f.mapper.RESTMapping(kind.GroupKind(), versionsOf(kind)...)
	if meta.IsNoMatchError(err) {
		f.absent.add(kind)
	}
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	return mapping, nil
}

// get reads the current object. If the gateway may get the kind, that is one read of the API
// server. Otherwise it lists by name, for which the API server waits until its cache is up to date.
func (f finder) get(ctx context.Context, as *meta.RESTMapping, key client.ObjectKey) (*unstructured.Unstructured, error) {
	kind := as.GroupVersionKind
	if !f.refused.has(kind) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		err := f.reader.Get(ctx, key, object)
		if !apierrors.IsForbidden(err) {
			return object, err
		}
		f.refused.add(kind)
	}
	return listget.Get(ctx, listget.Through(f.reader, kind, key.Namespace), as.Resource, key, "")
}

func versionsOf(kind schema.GroupVersionKind) []string {
	if kind.Version == anyVersion {
		return nil
	}
	return []string{kind.Version}
}

type compiledLookup struct {
	admissionv1alpha1.Lookup
	kind            schema.GroupVersionKind
	name, namespace plugincel.ConditionEvaluator
	// after is true if this lookup depends on earlier ones.
	after bool
}

func (b *build) lookups(compiled *Compiled) {
	for i, lookup := range compiled.policy.Spec.Lookups {
		source := field.NewPath("spec", "lookups").Index(i)
		out := compiledLookup{Lookup: lookup}
		apiVersion, kind := "", ""
		switch {
		case lookup.Get != nil:
			apiVersion, kind, source = lookup.Get.APIVersion, lookup.Get.Kind, source.Child("get")
			out.name = b.optional(source.Child("nameFrom"), lookup.Get.NameFrom, cel.AnyType)
			out.namespace = b.optional(source.Child("namespaceFrom"), lookup.Get.NamespaceFrom, cel.AnyType)
			out.after = b.compiler.mentions(lookup.Get.NameFrom, plugincel.ParamsVarName) || b.compiler.mentions(lookup.Get.NamespaceFrom, plugincel.ParamsVarName)
		case lookup.List != nil:
			apiVersion, kind, source = lookup.List.APIVersion, lookup.List.Kind, source.Child("list")
		default:
			b.problems = append(b.problems, field.Required(source, "a lookup needs either get or list"))
			continue
		}
		version, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			b.problems = append(b.problems, field.Invalid(source.Child("apiVersion"), apiVersion, err.Error()))
		}
		out.kind = version.WithKind(kind)
		compiled.lookups = append(compiled.lookups, out)
	}
}

// params binds the results of lookups to the variable of that name.
func (c *Compiled) params(found map[string]any) runtime.Object {
	if len(c.lookups) == 0 {
		return nil
	}
	return &unstructured.Unstructured{Object: map[string]any{lookupsField: found}}
}

// A lookupResult holds the results of a policy's lookups.
type lookupResult struct {
	// found are the objects, by the lookups' names.
	found map[string]any
	// missing are absent objects whose rules are skipped.
	missing []string
	// violations are absent objects that must exist.
	violations []Violation
}

// lookUp makes a policy's lookups concurrently, except those that read results of earlier ones. An
// absent object is a violation if the policy says so. A kind that the hub does not serve has no
// objects: a policy must not prevent the deletion of objects that refer to it.
func (c *Compiled) lookUp(ctx context.Context, find finder, request *Request, around surroundings) (lookupResult, error) {
	seen := lookupResult{found: map[string]any{}}
	for rest := c.lookups; len(rest) > 0; {
		wave := together(rest)
		rest = rest[len(wave):]
		around.params = c.params(seen.found)
		results, err := lookAtOnce(ctx, wave, find, request, around)
		if err != nil {
			return seen, fmt.Errorf("policy %s, %w", c.policy.Name, err)
		}
		for i, result := range results {
			c.enter(&seen, &wave[i], result)
		}
	}
	return seen, nil
}

func (c *Compiled) enter(seen *lookupResult, lookup *compiledLookup, result lookedUp) {
	object := lookup.kind.Kind + " " + result.missing
	switch {
	case result.found != nil:
		seen.found[lookup.Name] = result.found
	case result.missing == "":
	case lookup.OnMissing == admissionv1alpha1.MissingDeny:
		seen.violations = append(seen.violations, Violation{Path: defaultPath, Message: object + " is not found"})
	case slices.ContainsFunc(c.needs, func(needed map[string]bool) bool { return needed[lookup.Name] }):
		seen.missing = append(seen.missing, object)
	}
}

// together are the first lookups that do not depend on each other.
func together(lookups []compiledLookup) []compiledLookup {
	for i := 1; i < len(lookups); i++ {
		if lookups[i].after {
			return lookups[:i]
		}
	}
	return lookups
}

// lookedUp is the object that a lookup found, or its key if it does not exist; neither if there
// was nothing to look up.
type lookedUp struct {
	found   any
	missing string
}

// lookAtOnce evaluates the keys one after the other, since expressions share the request, and then
// reads all objects concurrently.
func lookAtOnce(ctx context.Context, wave []compiledLookup, find finder, request *Request, around surroundings) ([]lookedUp, error) {
	keys := make([]client.ObjectKey, len(wave))
	for i := range wave {
		var err error
		if keys[i], err = wave[i].key(ctx, request, around); err != nil {
			return nil, fmt.Errorf("lookup %s: %w", wave[i].Name, err)
		}
	}
	results := make([]lookedUp, len(wave))
	reads, ctx := errgroup.WithContext(ctx)
	for i := range wave {
		reads.Go(func() error {
			var err error
			if results[i], err = wave[i].read(ctx, find, request, keys[i]); err != nil {
				return fmt.Errorf("lookup %s: %w", wave[i].Name, err)
			}
			return nil
		})
	}
	return results, reads.Wait()
}

// key is the object to get, if the lookup is not a list. Without a name there is nothing to look
// up.
func (l *compiledLookup) key(ctx context.Context, request *Request, around surroundings) (client.ObjectKey, error) {
	key := client.ObjectKey{Namespace: request.namespace}
	if l.Get == nil {
		return key, nil
	}
	var err error
	if key.Name, err = text(ctx, l.name, request, around); err != nil || key.Name == "" || l.namespace == nil {
		return key, err
	}
	key.Namespace, err = text(ctx, l.namespace, request, around)
	return key, err
}

func (l *compiledLookup) read(ctx context.Context, find finder, request *Request, key client.ObjectKey) (lookedUp, error) {
	if l.List != nil {
		list, err := l.list(ctx, find, request)
		return lookedUp{found: list}, err
	}
	if key.Name == "" {
		return lookedUp{}, nil
	}
	missing := lookedUp{missing: key.String()}
	as, err := find.served(l.kind)
	if err != nil || as == nil {
		return missing, err
	}
	object, err := find.get(ctx, as, key)
	if err != nil {
		return missing, ignoreAbsent(err)
	}
	hideValues(l.kind, object)
	return lookedUp{found: object.Object}, nil
}

func (l *compiledLookup) list(ctx context.Context, find finder, request *Request) (any, error) {
	options := []client.ListOption{client.Limit(maxListed)}
	if !l.List.AllNamespaces {
		options = append(options, client.InNamespace(request.namespace))
	}
	none := map[string]any{"items": []any{}}
	as, err := find.served(l.kind)
	if err != nil || as == nil {
		return none, err
	}
	items, kind := &unstructured.UnstructuredList{}, as.GroupVersionKind
	items.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if label := l.List.SameLabel; label != "" {
		value, ok := request.current().GetLabels()[label]
		if !ok {
			return none, nil
		}
		options = append(options, client.MatchingLabels{label: value})
	}
	if err := find.reader.List(ctx, items, options...); ignoreAbsent(err) != nil {
		return nil, err
	}
	all := make([]any, 0, len(items.Items))
	for i := range items.Items {
		hideValues(l.kind, &items.Items[i])
		all = append(all, items.Items[i].Object)
	}
	return map[string]any{"items": all}, nil
}

// ignoreAbsent drops errors that mean that the object or kind does not exist.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// hideValues keeps only the keys of a Secret, because callers see a policy's messages and may lack
// permission to read the Secret.
func hideValues(kind schema.GroupVersionKind, object *unstructured.Unstructured) {
	if kind.Group != "" || kind.Kind != "Secret" {
		return
	}
	for _, name := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(object.Object, name)
		for key := range values {
			values[key] = ""
		}
		object.Object[name] = values
	}
	object.SetAnnotations(nil)
	object.SetManagedFields(nil)
}

var errNotText = errors.New("the result is no text")

// text evaluates an expression for a name; null is empty.
func text(ctx context.Context, evaluator plugincel.ConditionEvaluator, request *Request, around surroundings) (string, error) {
	value, err := one(ctx, evaluator, request, around)
	if err != nil {
		return "", err
	}
	switch value := value.(type) {
	case string:
		return value, nil
	case nil:
		return "", nil
	}
	return "", errNotText
}
