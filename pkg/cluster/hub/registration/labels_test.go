// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestDesiredLabelsAccepted_NamesDroppedLabels(t *testing.T) {
	many := map[string]string{}
	for i := range maxLabels + 3 {
		many[fmt.Sprintf("l%03d", i)] = ""
	}
	pod := map[string]string{registrationv1alpha1.LabelCreatedByAgentPod: "agent-0"}
	tests := map[string]struct {
		brought, set map[string]string
		allowed      string
		says         []string
	}{
		"all kept":                    {map[string]string{"team": "a"}, nil, "*", nil},
		"only the name of the Pod":    {pod, nil, "", nil},
		"not allowed by the token":    {map[string]string{"team": "a", "env": "b"}, nil, "env", []string{"team (not allowed by fleetgate.io/allowed-labels"}},
		"of a cloud provider":         {map[string]string{"fleet.azure.com/location": "a"}, nil, "*", []string{"fleet.azure.com/location (not allowed"}},
		"reserved":                    {map[string]string{"fleetgate.io/x": "a"}, nil, "*", []string{"fleetgate.io/x (reserved)"}},
		"invalid, with separators":    {map[string]string{"a=b,c": "d"}, nil, "*", []string{"a?b?c (not a valid label)"}},
		"too many":                    {many, nil, "*", []string{"l000 (more than 64 labels), l001", "l063 (", ", 3 more;"}},
		"set by an administrator":     {map[string]string{"team": "a", "tier": "b"}, map[string]string{"team": "c"}, "", []string{"dropped: tier (not"}},
		"all set by an administrator": {map[string]string{"team": "a"}, map[string]string{"team": "c"}, "", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := &registrationv1alpha1.ClusterRegistration{}
			request.Spec.ClusterLabels = tc.brought
			cluster := desiredCluster(applicantOf(request, allowance{approved: true, labels: strings.Split(tc.allowed, ",")}))
			for key, value := range tc.set {
				cluster.Labels[key] = value
			}
			got := desiredLabelsAccepted(cluster)
			if tc.says == nil {
				if got != nil {
					t.Errorf("got %+v, want no condition", got)
				}
				return
			}
			if got == nil || got.Status != corev1.ConditionFalse {
				t.Fatalf("got %+v, want False", got)
			}
			for _, says := range tc.says {
				if !strings.Contains(got.Message, says) {
					t.Errorf("message %q does not contain %q", got.Message, says)
				}
			}
		})
	}
}

func TestDesiredLabelsAccepted_TrueOnceLabelsAreSet(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{}
	cluster.Annotations = map[string]string{AnnotationDroppedLabels: "team=NotAllowed"}
	cluster.Status.Conditions = []registrationv1alpha1.GenericCondition{*desiredLabelsAccepted(cluster)}
	cluster.Labels = map[string]string{"team": "a"}
	if got := desiredLabelsAccepted(cluster); got == nil || got.Status != corev1.ConditionTrue {
		t.Errorf("got %+v, want True", got)
	}
}

func TestShareFacts_KeepsLabelsOfTheAdministrator(t *testing.T) {
	cluster := &registrationv1alpha1.Cluster{}
	cluster.Labels = map[string]string{registrationv1alpha1.LabelLocation: "eastus"}
	shareFacts(&cluster.ObjectMeta, map[string]string{
		"env": "prod", registrationv1alpha1.LabelLocation: "westeurope", registrationv1alpha1.LabelSubscription: "sub-1",
	})
	want := map[string]string{registrationv1alpha1.LabelLocation: "eastus", registrationv1alpha1.LabelSubscription: "sub-1"}
	if diff := cmp.Diff(want, cluster.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got := cluster.Annotations[AnnotationBroughtLabels]; got != registrationv1alpha1.LabelSubscription+"=sub-1" {
		t.Errorf("brought: %q", got)
	}
}

func TestSanitizeLabels(t *testing.T) {
	many := map[string]string{}
	for i := range maxLabels + 1 {
		many[fmt.Sprintf("label-%d", i)] = "x"
	}
	tests := map[string]struct{ wanted, want map[string]string }{
		"none":           {nil, nil},
		"ordinary ones":  {map[string]string{"env": "prod", "example.org/tier": "1"}, map[string]string{"env": "prod", "example.org/tier": "1"}},
		"reserved ones":  {map[string]string{"management.cattle.io/a": "1", "fleet.cattle.io/b": "1", "kubernetes-fleet.io/c": "1", "fleetgate.io/d": "1", "keep": "1"}, map[string]string{"keep": "1"}},
		"the pod's name": {map[string]string{"fleet.cattle.io/created-by-agent-pod": "agent-0"}, map[string]string{"fleet.cattle.io/created-by-agent-pod": "agent-0"}},
		"invalid ones":   {map[string]string{"a b": "1", "ok": "no spaces please", "long": strings.Repeat("x", 64), "keep": "1"}, map[string]string{"keep": "1"}},
		"far too many":   {many, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, sanitizeLabels(tc.wanted)); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}
