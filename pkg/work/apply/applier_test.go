// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestWhatANamespacePlacesIsAppliedWithItsRights(t *testing.T) {
	var mu sync.Mutex
	var asked []http.Header
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
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
			`ServiceAccount "deployer" of namespace "shop" may not get configmaps in namespace "ns" of the member: its role lacks the rule {apiGroups: [""], resources: ["configmaps"], verbs: [get]}`},
		"one without": {"deployer", "", "", nil,
			`The agent may not get configmaps in namespace "ns" of the member: its role lacks the rule {apiGroups: [""], resources: ["configmaps"], verbs: [get]}`},
		"nobody asked for it": {"", "shop", "", nil,
			`The agent may not get configmaps in namespace "ns" of the member: its role lacks the rule {apiGroups: [""], resources: ["configmaps"], verbs: [get]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked = nil
			config, base := &rest.Config{Host: member.URL}, http.Client{Transport: http.DefaultTransport}
			own, job := engineOn(t, testingclock.NewFakePassiveClock(time.Now()))
			var err error
			if own.member, err = dynamic.NewForConfigAndClient(config, &base); err != nil {
				t.Fatal(err)
			}
			work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{placementv1beta1.ParentPlacementNamespaceLabel: tc.namespace}}}
			out := newAppliers(tc.account, config, base).run(t.Context(), work, own, job, []item{configMapItem(t, "1")})[0]
			if len(asked) == 0 {
				t.Fatalf("the member was not asked: %+v", out)
			}
			for _, header := range asked {
				if got := header.Get("Impersonate-User"); got != tc.user {
					t.Errorf("it was %q who asked, want %q", got, tc.user)
				}
				if diff := cmp.Diff(tc.groups, header.Values("Impersonate-Group"), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("groups (-want +got):\n%s", diff)
				}
			}
			if out.refused == nil || out.refused.message != tc.message {
				t.Errorf("it says %+v, want %s", out.refused, tc.message)
			}
		})
	}
}
