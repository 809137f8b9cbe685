// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

func TestAppliers_UseTheRightsOfThePlacementsNamespace(t *testing.T) {
	var mu sync.Mutex
	var asked []http.Header
	kinds := newStandIn()
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if answer, is := kinds.discovery(strings.Split(strings.Trim(request.URL.Path, "/"), "/")); is {
			reply(w, http.StatusOK, answer)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, request.Header)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
			"message":"configmaps \"a\" is forbidden: User \"x\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"ns\""}`))
	}))
	defer member.Close()
	cases := map[string]struct {
		account, namespace string
		user               string
		groups             []string
		message            string
	}{
		"a placement in a namespace": {"deployer", "shop", "system:serviceaccount:shop:deployer",
			[]string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"},
			`ServiceAccount "deployer" of namespace "shop" cannot get configmaps in namespace "ns" of the member: its role lacks the rule {apiGroups: [""], resources: ["configmaps"], verbs: [get]}`},
		"one without": {"deployer", "", "", nil,
			`The agent cannot get configmaps in namespace "ns" of the member: its role lacks the rule {apiGroups: [""], resources: ["configmaps"], verbs: [get]}`},
		"not configured": {"", "shop", "", nil,
			`The agent cannot get configmaps in namespace "ns" of the member: its role lacks the rule {apiGroups: [""], resources: ["configmaps"], verbs: [get]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked = nil
			r, err := New(Options{Member: "m", MemberAPI: reached(t, &rest.Config{Host: member.URL, BearerToken: "of-the-agent"}), NamespacedApplier: tc.account})
			if err != nil {
				t.Fatal(err)
			}
			work := newWork("work", nil, manifestA("1"))
			work.Labels = map[string]string{placementv1beta1.ParentPlacementNamespaceLabel: tc.namespace}
			out := written(t, r, work)
			if len(asked) == 0 {
				t.Fatalf("the member was not asked: %+v", out)
			}
			for _, header := range asked {
				if got := header.Get("Impersonate-User"); got != tc.user {
					t.Errorf("the request is from %q, want %q", got, tc.user)
				}
				if diff := cmp.Diff(tc.groups, header.Values("Impersonate-Group"), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("groups (-want +got):\n%s", diff)
				}
			}
			if out.Refused == nil || out.Refused.Message != tc.message {
				t.Errorf("it says %+v, want %s", out.Refused, tc.message)
			}
		})
	}
}

// written returns the result of the one manifest of a Work.
func written(t *testing.T, r *Reconciler, work *placementv1beta1.Work) engine.ManifestResult {
	t.Helper()
	var err error
	p := &planned{work: work, mode: modeOf((*placementv1beta1.ApplyStrategy)(nil).WithDefaults(), nil), job: r.jobOf(work, &placementv1beta1.AppliedWork{}, (*placementv1beta1.ApplyStrategy)(nil).WithDefaults())}
	if p.items, err = r.items(work, p.mode); err != nil {
		t.Fatal(err)
	}
	if p.job.As, p.cannot, err = r.appliers.of(work); err != nil {
		t.Fatal(err)
	}
	p.job.Ledger = noLedger{}
	result, err := r.apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return result.Manifests[0]
}

// noLedger is always empty.
type noLedger struct{}

func (noLedger) Entries() []engine.Entry                     { return nil }
func (noLedger) Write(context.Context, []engine.Entry) error { return nil }
