// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// maxListed is how many objects a lookup of a list reads.
const maxListed = 500

// anyVersion in the place of a lookup's version means the one that the hub prefers.
const anyVersion = "*"

// A finder reads the hub for lookups.
type finder struct {
	reader client.Reader
	mapper meta.RESTMapper
}

// served gives the kind its version; absent is true if the hub does not serve it.
func (f finder) served(kind schema.GroupVersionKind) (found schema.GroupVersionKind, absent bool, err error) {
	mapping, err := f.mapper.RESTMapping(kind.GroupKind(), versionsOf(kind)...)
	if err != nil {
		return kind, true, ignoreAbsent(err)
	}
	return mapping.GroupVersionKind, false, nil
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

// params binds what lookups found to the variable of that name.
func (c *Compiled) params(found map[string]any) runtime.Object {
	if len(c.lookups) == 0 {
		return nil
	}
	return &unstructured.Unstructured{Object: map[string]any{lookupsField: found}}
}

// look makes a policy's lookups, one after the other, since later ones may read
// what earlier ones found. What is not there is a violation if the policy says so.
// A kind that the hub does not serve has no objects: a policy must not keep others
// from deleting what is left of it.
func (c *Compiled) look(ctx context.Context, find finder, request *Request, around surroundings) (map[string]any, []Violation, error) {
	found := map[string]any{}
	var violations []Violation
	for i := range c.lookups {
		lookup := &c.lookups[i]
		around.params = c.params(found)
		object, sought, err := lookup.read(ctx, find, request, around)
		if err != nil {
			return found, violations, fmt.Errorf("policy %s, lookup %s: %w", c.policy.Name, lookup.Name, err)
		}
		if object != nil {
			found[lookup.Name] = object
		} else if sought != "" && lookup.OnMissing == admissionv1alpha1.MissingDeny {
			violations = append(violations, Violation{Path: defaultPath, Message: lookup.kind.Kind + " " + sought + " is not found"})
		}
	}
	return found, violations, nil
}

// read returns the object, or what was looked for if it is not there.
func (l *compiledLookup) read(ctx context.Context, find finder, request *Request, around surroundings) (any, string, error) {
	if l.List != nil {
		list, err := l.list(ctx, find, request)
		return list, "", err
	}
	key := client.ObjectKey{Namespace: request.namespace}
	var err error
	if key.Name, err = text(ctx, l.name, request, around); err != nil || key.Name == "" {
		return nil, "", err
	}
	if l.namespace != nil {
		if key.Namespace, err = text(ctx, l.namespace, request, around); err != nil {
			return nil, "", err
		}
	}
	kind, absent, err := find.served(l.kind)
	if err != nil || absent {
		return nil, key.String(), err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := find.reader.Get(ctx, key, object); err != nil {
		return nil, key.String(), ignoreAbsent(err)
	}
	hideValues(l.kind, object)
	return object.Object, "", nil
}

func (l *compiledLookup) list(ctx context.Context, find finder, request *Request) (any, error) {
	options := []client.ListOption{client.Limit(maxListed)}
	if !l.List.AllNamespaces {
		options = append(options, client.InNamespace(request.namespace))
	}
	none := map[string]any{"items": []any{}}
	kind, absent, err := find.served(l.kind)
	if err != nil || absent {
		return none, err
	}
	items := &unstructured.UnstructuredList{}
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

// ignoreAbsent drops the errors that say that there is nothing.
func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// hideValues leaves the keys of a Secret: messages of policies are for callers who
// may not read it.
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

// text evaluates an expression for a name; what is null is empty.
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
