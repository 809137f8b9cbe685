// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// executorsWho returns executors with these verbs; says is the cluster's error for roles that they
// write.
func executorsWho(t *testing.T, says error, may ...string) (e *executors, asked *[]string, clock *testingclock.FakePassiveClock) {
	t.Helper()
	asked, clock = &[]string{}, testingclock.NewFakePassiveClock(early.Time)
	member := kubefake.NewClientset()
	member.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		if review.Spec.User != "system:serviceaccount:ns:deployer" || len(review.Spec.Groups) != 3 {
			t.Errorf("the cluster is asked about %q in %q", review.Spec.User, review.Spec.Groups)
		}
		*asked = append(*asked, review.Spec.ResourceAttributes.Verb)
		review.Status.Allowed = slices.Contains(may, review.Spec.ResourceAttributes.Verb)
		return true, review, nil
	})
	writes := dynamicfake.NewSimpleDynamicClient(scheme.Scheme)
	writes.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return says != nil, nil, says
	})
	return &executors{member: member, clock: clock, reviews: map[reviewKey]cachedReview{},
		as: func(engine.Account) (dynamic.Interface, error) { return writes, nil }}, asked, clock
}

func deployer() *workv1.ManifestWorkExecutor {
	return &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount",
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "ns", Name: "deployer"}}}
}

func TestExecutors_RefuseAnExecutorWithoutEveryRight(t *testing.T) {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}
	sets := schema.GroupResource{Group: "work.open-cluster-management.io", Resource: "manifestworkreplicasets"}
	role := manifest.Ref{Group: roles.Group, Version: "v1", Kind: "Role", Resource: "roles", Namespace: "ns", Name: "r"}
	all := []string{"create", "update", "patch", "get", "delete"}
	for name, tc := range map[string]struct {
		executor *workv1.ManifestWorkExecutor
		may      []string
		says     error
		ref      manifest.Ref
		stays    bool
		want     string // the refusal; "ok": none, "error": it cannot be told
	}{
		"no executor":                           {nil, nil, nil, refTo("a"), false, "ok"},
		"all rights":                            {deployer(), all, nil, refTo("a"), false, "ok"},
		"no right to get":                       {deployer(), []string{"create", "update", "patch", "delete"}, nil, refTo("a"), false, "not allowed to apply the resource  configmaps, default a, will try again in 1m0s"},
		"no right to delete a removed object":   {deployer(), all[:4], nil, refTo("a"), false, "not allowed to apply the resource  configmaps, default a, will try again in 1m0s"},
		"no right to delete an orphaned object": {deployer(), all[:4], nil, refTo("a"), true, "ok"},
		"a role without escalation":             {deployer(), all, nil, role, false, "ok"},
		"an existing role":                      {deployer(), all, apierrors.NewAlreadyExists(roles, "r"), role, false, "ok"},
		"a role with escalation": {deployer(), all, apierrors.NewForbidden(roles, "r", errors.New("escalation")), role, false,
			"not allowed to apply the resource rbac.authorization.k8s.io roles, ns r, error: permission escalation, will try again in 1m0s"},
		"a binding of a missing role": {deployer(), all, apierrors.NewNotFound(roles, "x"), role, false,
			`not allowed to apply the resource rbac.authorization.k8s.io roles, ns r, error: roles.rbac.authorization.k8s.io "x" not found, will try again in 1m0s`},
		"a set that another hub rejects": {deployer(), all, apierrors.NewForbidden(sets, "s", errors.New("forbidden")),
			manifest.Ref{Group: sets.Group, Version: "v1alpha1", Kind: "ManifestWorkReplicaSet", Resource: sets.Resource, Namespace: "ns", Name: "s"}, false,
			"not allowed to apply the resource work.open-cluster-management.io manifestworkreplicasets, ns s, error: permission escalation, will try again in 1m0s"},
		"no answer from the cluster": {deployer(), all, errors.New("no route"), role, false, "error"},
		"no service account":         {&workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount"}}, all, nil, refTo("a"), false, "the executor service account is nil"},
		"another type":               {&workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: "User"}}, all, nil, refTo("a"), false, "only support ServiceAccount type for the executor"},
	} {
		t.Run(name, func(t *testing.T) {
			e, _, _ := executorsWho(t, tc.says, tc.may...)
			raw := []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"namespace":"ns","name":"r"}}`)
			refused, err := e.refuse(t.Context(), tc.executor, raw, tc.ref, !tc.stays)
			got := "ok"
			if refused != nil {
				got = refused.Message
			}
			if err != nil {
				got = "error"
			}
			if got != tc.want {
				t.Errorf("the answer is %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

func TestExecutors_CacheAccessReviews(t *testing.T) {
	e, asked, clock := executorsWho(t, nil, "create", "update", "patch", "get", "delete")
	for range 3 {
		if refused, err := e.refuse(t.Context(), deployer(), nil, refTo("a"), true); refused != nil || err != nil {
			t.Fatal(refused, err)
		}
	}
	if text := strings.Join(*asked, " "); text != "create update patch get delete" {
		t.Errorf("asked at first: %s", text)
	}
	clock.SetTime(early.Add(reviewTTL + time.Millisecond))
	if _, err := e.refuse(t.Context(), deployer(), nil, refTo("a"), true); err != nil || len(*asked) != 10 {
		t.Errorf("asked later: %v (%v)", *asked, err)
	}
}
