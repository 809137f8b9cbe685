// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

func TestApprove_RetriesOnConflict(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "to-two"}}
	request := func(name string) *placementv1beta1.ClusterApprovalRequest {
		r := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{placementv1beta1.TargetUpdateRunLabel: "to-two"}}}
		r.Spec.TargetStage = name
		return r
	}
	for name, test := range map[string]struct {
		// conflicts is how often another client writes the second request in between.
		conflicts int
		said, err string
	}{
		"nobody":       {0, "canary approved\nrest approved\n", ""},
		"somebody":     {2, "canary approved\nrest approved\n", ""},
		"all the time": {100, "canary approved\n", "patching rest"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme, err := overview.Scheme()
			if err != nil {
				t.Fatal(err)
			}
			left := test.conflicts
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(run.DeepCopy(), request("canary"), request("rest")).WithStatusSubresource(request("")).
				WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
					if o.GetName() == "rest" && left > 0 {
						left--
						return apierrors.NewConflict(placementv1beta1.GroupVersion.WithResource("clusterapprovalrequests").GroupResource(), "rest", nil)
					}
					return c.SubResource(sub).Patch(ctx, o, patch, options...)
				}}).Build()
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			err = (&session{IOStreams: streams, Clock: clock.RealClock{}}).approve(t.Context(), &overview.Hub{WithWatch: c}, "to-two", "")
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || out.String() != test.said {
				t.Errorf("got %v and %q, want %q and %q", err, out, test.err, test.said)
			}
			if test.err != "" {
				return
			}
			approved := &placementv1beta1.ClusterApprovalRequest{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "rest"}, approved); err != nil || !meta.IsStatusConditionTrue(approved.Status.Conditions, placementv1beta1.ConditionApprovalRequestApproved) {
				t.Errorf("request rest is %v: %v", approved.Status.Conditions, err)
			}
		})
	}
}

func TestWriteRuns_PrintsObjects(t *testing.T) {
	runs := func() []placementv1beta1.UpdateRunObject {
		return []placementv1beta1.UpdateRunObject{
			&placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "wide", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "someone"}}}},
			&placementv1beta1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "narrow"}},
		}
	}
	printed := func(format string, of []placementv1beta1.UpdateRunObject) string {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		if err := (&session{IOStreams: streams}).writeRuns(format, of); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := "clusterstagedupdaterun.placement.kubernetes-fleet.io/wide\nstagedupdaterun.placement.kubernetes-fleet.io/narrow\n"
	if diff := cmp.Diff(want, printed(outputName, runs())); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	var list struct {
		Kind  string `json:"kind"`
		Items []metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal([]byte(printed(outputJSON, runs())), &list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "List" || len(list.Items) != 2 || list.Items[0].Kind != "ClusterStagedUpdateRun" || list.Items[0].ManagedFields != nil || list.Items[1].Namespace != "team" || list.Items[1].Kind != "StagedUpdateRun" {
		t.Errorf("got %+v", list)
	}
	if got := printed(outputYAML, nil); !strings.Contains(got, "items: []") {
		t.Errorf("of no runs programs read\n%s", got)
	}
}
