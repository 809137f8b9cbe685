// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
)

// nobody answers no to every question, and counts them: questions are asked concurrently.
type nobody struct {
	client.Writer
	reviewed atomic.Int32
}

func (n *nobody) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	n.reviewed.Add(1)
	object.(*authorizationv1.SubjectAccessReview).Status.Allowed = false
	return nil
}

func TestSets_AuthorizeAuthor(t *testing.T) {
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	set.Spec.ManifestWorkTemplate.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"b"}}`),
	}}}
	changed := set.DeepCopy()
	changed.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: "p"}}
	labelled := set.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	for name, tc := range map[string]struct {
		older, newer *workv1alpha1.ManifestWorkReplicaSet
		trusting     bool
		refused      bool
	}{
		"who makes one":                       {newer: set, refused: true},
		"who changes its spec":                {older: set, newer: changed, refused: true},
		"not who changes its labels":          {older: set, newer: labelled},
		"nobody where authors are trusted":    {newer: set, trusting: true},
		"nobody about changes of spec either": {older: set, newer: changed, trusting: true},
	} {
		reviews := &nobody{}
		known := func(schema.GroupVersionKind) (author.Resource, bool, error) {
			return author.Resource{Name: "configmaps", Namespaced: true}, true, nil
		}
		v := setsValidator{limit: 1000, resources: known, authors: authors{reviews: reviews}, trusting: tc.trusting}
		ctx := admission.NewContextWithRequest(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UserInfo: authenticationv1.UserInfo{Username: "u"},
		}})
		err := v.refuse(ctx, tc.older, tc.newer)
		if apierrors.IsInvalid(err) != tc.refused || !tc.refused && err != nil || (reviews.reviewed.Load() > 0) != tc.refused {
			t.Errorf("%s: %v after %d questions, want refused %v", name, err, reviews.reviewed.Load(), tc.refused)
		}
	}
}
