// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRefusedAsGoing(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	going := apierrors.NewForbidden(secrets, "s", errors.New("unable to create new content in namespace n because it is being terminated"))
	going.ErrStatus.Details.Causes = append(going.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"terminating namespace":           {going, true},
		"the same, and with more details": {fmt.Errorf("creating Secret: %w", going), true},
		"forbidden":                       {apierrors.NewForbidden(secrets, "s", errors.New("no")), false},
		"missing namespace":               {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "n"), false},
		"other error":                     {errors.New("because it is being terminated"), false},
		"no error":                        {nil, false},
	} {
		if got := RefusedAsGoing(tc.err); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
