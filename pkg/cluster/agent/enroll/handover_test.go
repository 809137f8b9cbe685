// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestLeaveValues_AreUsedByTheAgent(t *testing.T) {
	member := fake.NewClientset()
	const namespace = "fleet-system-second"
	agent := New(Options{Member: member, Namespace: namespace})
	if _, err := ReadIdentity(t.Context(), member, namespace); err == nil || !strings.Contains(err.Error(), namespace) {
		t.Errorf("of an agent that never registered got %v", err)
	}
	id, err := agent.store.identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.store.putCredential(t.Context(), &credential{
		hubAddress: hubAddress{server: "https://former", proxy: "http://proxy:3128"}, member: "edge", token: "former", expires: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	stored, err := ReadIdentity(t.Context(), member, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&StoredIdentity{Member: "edge", PublicKey: id.key.PublicKey(), ProxyURL: "http://proxy:3128"}, stored); diff != "" {
		t.Error(diff)
	}
	for _, hub := range []string{"https://first", "https://second"} { // The later ones count.
		left := &Bootstrap{AgentValues: registrationv1alpha1.AgentValues{APIServerURL: hub, Token: "secret", ClusterNamespace: "clusters"},
			ClientID: "the-cluster", ProxyURL: stored.ProxyURL}
		if err := LeaveValues(t.Context(), member, namespace, left); err != nil {
			t.Fatal(err)
		}
		found, err := agent.bootstrap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(left, found); diff != "" {
			t.Error(diff)
		}
	}
}
