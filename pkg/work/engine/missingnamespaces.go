// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// missingNamespaces holds the namespaces that objects of one work need and that do not exist on the member.
// The engine watches them: their creation triggers a reconcile before the next retry.
type missingNamespaces struct {
	mu    sync.Mutex // guards names
	names []string
}

// namespaces returns the objects to watch.
func (l *missingNamespaces) namespaces() []memberwatch.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	objects := make([]memberwatch.Object, 0, len(l.names))
	for _, name := range l.names {
		objects = append(objects, memberwatch.Object{Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Name: name})
	}
	return objects
}

// note stores the namespaces that results lack, and reports whether they changed.
func (l *missingNamespaces) note(results []ManifestResult) bool {
	var names []string
	for _, out := range results {
		if out.namespaceMissing {
			names = append(names, out.Ref.Namespace)
		}
	}
	slices.SortFunc(names, strings.Compare)
	names = slices.Compact(names)
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Equal(l.names, names) {
		return false
	}
	l.names = names
	return true
}

// isWithoutNamespace reports whether the member rejected an object because its namespace does not
// exist.
func isWithoutNamespace(err error) bool {
	var response apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &response) {
		return false
	}
	details := response.Status().Details
	return details != nil && details.Group == "" && details.Kind == "namespaces"
}
