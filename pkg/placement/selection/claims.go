// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/listget"
)

var (
	claimKind    = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	statefulSets = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
)

// ofStatefulSet reports whether an object is a claim of a StatefulSet in its namespace. Such claims
// have no owner reference, and StatefulSets on members create their own.
func (l *evaluation) ofStatefulSet(ctx context.Context, claim *unstructured.Unstructured) (bool, error) {
	if claim.GroupVersionKind().GroupKind() != claimKind || claim.GetAnnotations()[placementv1beta1.PlaceAnnotation] == placementv1beta1.PlaceAlways {
		return false, nil
	}
	kind := Kind{GroupVersionKind: statefulSets, Resource: "statefulsets", Namespaced: true}
	sets, err := l.watcher.list(kind, claim.GetNamespace())
	if errors.Is(err, errUnlisted) {
		l.miss(claimsOf(claim)) // The owner is unknown.
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, set := range sets {
		if !strings.Contains(claim.GetName(), "-"+set.Name+"-") {
			continue
		}
		key := types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
		full, err := listget.Get(ctx, l.client.Resource(kind.GVR()).Namespace(set.Namespace), kind.GVR(), key, set.ResourceVersion)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil && (OfTheKind(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err)):
			l.miss(claimsOf(claim))
			return true, nil
		case err != nil:
			return false, fmt.Errorf("finding out whose claim %q is: %w", claim.GetName(), err)
		case fromTemplate(claim.GetName(), full):
			return true, nil
		}
	}
	return false, nil
}

func claimsOf(claim *unstructured.Unstructured) Unreadable {
	return Unreadable{Kind: Kind{GroupVersionKind: claim.GroupVersionKind(), Resource: "persistentvolumeclaims", Namespaced: true}, Fault: "the StatefulSets that they may be of cannot be read"}
}

// fromTemplate reports whether a claim has a name that the StatefulSet generates.
func fromTemplate(name string, set *unstructured.Unstructured) bool {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		fields, ok := template.(map[string]any)
		if !ok {
			continue
		}
		template, _, _ := unstructured.NestedString(fields, "metadata", "name")
		ordinal, is := strings.CutPrefix(name, template+"-"+set.GetName()+"-")
		if is && ordinal != "" && strings.Trim(ordinal, "0123456789") == "" {
			return true
		}
	}
	return false
}
