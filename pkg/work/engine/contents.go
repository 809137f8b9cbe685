// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Deleting a Namespace deletes all objects in it; deleting a CustomResourceDefinition deletes all
// objects of its kind. Before the engine deletes either, it looks for objects that the removal does
// not cover.

// othersTimeout is how long a deleted work waits for objects that another work, or a controller,
// may be about to delete. Users often delete several placements at once.
const othersTimeout = 30 * time.Second

// Claim is whether another work wants its object.
type Claim int

const (
	// Wanted means that a work still contains the object.
	Wanted Claim = iota
	// Going means that the owning work is being deleted.
	Going
	// Unwanted means that no work contains the object any more.
	Unwanted
)

// contents lists the objects in a Namespace, or of a CustomResourceDefinition, that a removal does
// not cover.
type contents struct {
	// others are objects that keep the container.
	others []string
	// going are objects that may be deleted soon, because their work or owner is being deleted.
	going []string
	// unknown describes API groups that did not answer.
	unknown []string
}

// isContainer reports whether deleting an object of this kind deletes other objects.
func isContainer(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Namespace"} || kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// contentsOf lists the objects of a container that the removal does not cover. It stops at the
// first resource with an object that keeps the container.
func (e *Engine) contentsOf(ctx context.Context, p pruning, live *unstructured.Unstructured) (contents, error) {
	applyItems := inspection{engine: e, pruning: p}
	if live.GetKind() != "Namespace" {
		resource, served := definedResource(live)
		if !served {
			return contents{}, nil
		}
		err := applyItems.through(ctx, resource, "")
		return applyItems.found, err
	}
	applyItems.inNamespace = true
	resources, unanswered, err := e.stored.namespaced(ctx)
	if err != nil {
		return contents{}, err
	}
	for _, group := range unanswered {
		applyItems.found.unknown = append(applyItems.found.unknown, fmt.Sprintf("API group %q, which does not respond", group))
	}
	for _, resource := range resources {
		if err := applyItems.through(ctx, resource, live.GetName()); err != nil {
			return contents{}, err
		}
		if len(applyItems.found.others) > 0 {
			break
		}
	}
	return applyItems.found, nil
}

// definedResource returns the resource that a CustomResourceDefinition defines, in a served
// version.
func definedResource(definition *unstructured.Unstructured) (resourceKind, bool) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range items(versions) {
		if served, _ := version["served"].(bool); served {
			name, _ := version["name"].(string)
			return resourceKind{Kind: kind,
				GroupVersionResource: schema.GroupVersionResource{Group: group, Version: name, Resource: plural}}, true
		}
	}
	return resourceKind{}, false
}

// inspection is the inspection of one container.
type inspection struct {
	engine *Engine
	pruning
	// inNamespace is set when the container is a namespace: owners inside it are inspected on their
	// own.
	inNamespace bool
	found       contents
}

// through inspects all objects of one resource.
func (l *inspection) through(ctx context.Context, resource resourceKind, namespace string) error {
	from := ""
	for {
		page, err := l.engine.stored.list(ctx, resource.GroupVersionResource, namespace, from)
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
			return nil // there are none of the kind
		case apierrors.IsResourceExpired(err) && from != "":
			from = ""
			continue
		case apierrors.IsForbidden(err):
			l.found.others = append(l.found.others, fmt.Sprintf("perhaps %s, for which the agent lacks the right to list", resource.GroupResource()))
			return nil
		case err != nil:
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for i := range page.Items {
			if err := l.classify(ctx, resource, &page.Items[i]); err != nil {
				return err
			}
		}
		if from = page.Continue; from == "" || len(l.found.others) > 0 {
			return nil
		}
	}
}

// classify classifies one object.
func (l *inspection) classify(ctx context.Context, resource resourceKind, object *metav1.PartialObjectMetadata) error {
	key := manifest.Key{Group: resource.Group, Kind: resource.Kind, Namespace: object.Namespace, Name: object.Name}
	if object.DeletionTimestamp != nil || isMadeByKubernetes(resource.GroupResource(), object) {
		return nil
	}
	s := OwnershipOf(object.OwnerReferences, l.work.Record)
	switch {
	case s.Ours && l.work.Ending.IsZero() && !l.removing[key]:
		l.found.others = append(l.found.others, key.String()+", which the Work still contains")
	case s.Ours:
	case len(s.Works) > 0:
		return l.classifyOfWork(ctx, key, s.Works)
	case len(s.Others) == 0:
		l.found.others = append(l.found.others, key.String())
	default:
		l.classifyOwned(key, s.Others)
	}
	return nil
}

// classifyOfWork classifies an object that other works own.
func (l *inspection) classifyOfWork(ctx context.Context, key manifest.Key, works []string) error {
	claim := Wanted
	for _, record := range works {
		var err error
		if claim, err = l.work.Owner.Claim(ctx, record, key); err != nil {
			return err
		}
		if claim == Wanted {
			break
		}
	}
	text := key.String() + ", which another Work applied"
	switch {
	case claim == Unwanted:
	case claim == Going || l.isWithin(othersTimeout):
		l.found.going = append(l.found.going, text)
	default:
		l.found.others = append(l.found.others, text)
	}
	return nil
}

// classifyOwned classifies an object whose owners are not works. An owner in the same namespace is
// inspected itself, and the garbage collector deletes the object together with an owner that this
// removal deletes.
func (l *inspection) classifyOwned(key manifest.Key, owners []metav1.OwnerReference) {
	for _, owner := range owners {
		if l.deletesDependents(owner.UID) || l.inNamespace && l.isNamespaced(owner) {
			return
		}
	}
	if l.isWithin(othersTimeout) {
		l.found.going = append(l.found.going, key.String())
		return
	}
	l.found.others = append(l.found.others, key.String())
}

// isWithin reports whether a deleted work has waited for less than this time.
func (l *inspection) isWithin(backoff time.Duration) bool {
	return !l.work.Ending.IsZero() && l.engine.clock.Since(l.work.Ending) < backoff
}

// isNamespaced reports whether an owner is namespaced. If the member does not serve the kind of the
// owner, no such owner can exist.
func (l *inspection) isNamespaced(owner metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false
	}
	mapping, err := l.engine.kinds.RESTMapping(schema.GroupKind{Group: version.Group, Kind: owner.Kind}, version.Version)
	return err == nil && mapping.Scope.Name() == apimeta.RESTScopeNameNamespace
}

// isMadeByKubernetes recognizes objects that controllers of Kubernetes, or of a distribution,
// create in every namespace. A bound PersistentVolumeClaim always counts as data.
func isMadeByKubernetes(resource schema.GroupResource, object *metav1.PartialObjectMetadata) bool {
	switch resource {
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		return object.Annotations["pv.kubernetes.io/bind-completed"] == "" && isWrittenBy(object, kubeControllers)
	case schema.GroupResource{Resource: "serviceaccounts"}:
		return object.Name == "default" || object.Name == "builder" || object.Name == "deployer"
	case schema.GroupResource{Resource: "configmaps"}:
		return object.Name == "kube-root-ca.crt" || object.Name == "openshift-service-ca.crt" || object.Name == "istio-ca-root-cert"
	case schema.GroupResource{Resource: "secrets"}:
		return object.Annotations["kubernetes.io/service-account.name"] != ""
	case schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}:
		return strings.HasPrefix(object.Name, "system:")
	}
	return isWrittenBy(object, kubeControllers)
}

// kubeControllers is the field manager of the controllers in kube-controller-manager.
const kubeControllers = "kube-controller-manager"

// isWrittenBy reports whether only this field manager has written the object.
func isWrittenBy(object *metav1.PartialObjectMetadata, manager string) bool {
	return len(object.ManagedFields) > 0 && onlyHolds(manager, object.ManagedFields)
}

// text names the first object that keeps the container and counts the others.
func (c contents) text() string {
	all := append(append(append([]string(nil), c.others...), c.going...), c.unknown...)
	if more := len(all) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", all[0], more)
	}
	return all[0]
}
