// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// rebuiltHub does not know earlier credentials, and serves the registration for the agent's key
// without a credential.
type rebuiltHub struct {
	*tokenHub
	t    *testing.T
	left *registrationv1alpha1.ClusterRegistration
}

func (h *rebuiltHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, name, asks := strings.Cut(r.URL.Path, "/namespaces/fleet-returning/clusterregistrations/")
	switch {
	case !asks:
		h.tokenHub.ServeHTTP(w, r)
	case r.Method != http.MethodGet || r.Header.Get("Authorization") != "":
		h.t.Errorf("%s with Authorization %q", r.Method, r.Header.Get("Authorization"))
	case h.left == nil || h.left.Name != name:
		writeJSON(w, 403, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 403, Reason: metav1.StatusReasonForbidden})
	default:
		writeJSON(w, 200, h.left)
	}
}

func TestEnroller_ReturnsToARebuiltHubByItsKey(t *testing.T) {
	for name, tc := range map[string]struct {
		// leaves changes the registration on the hub; if nil, there is none.
		leaves  func(left *registrationv1alpha1.ClusterRegistration, credential *sealing.Credential)
		expired bool
		want    string
	}{
		"not without a registration on the hub": {want: NeedsToken},
		"with a registration on the hub":        {leaves: func(*registrationv1alpha1.ClusterRegistration, *sealing.Credential) {}},
		"with an expired credential":            {leaves: func(*registrationv1alpha1.ClusterRegistration, *sealing.Credential) {}, expired: true},
		"not as another member": {want: NeedsToken, leaves: func(_ *registrationv1alpha1.ClusterRegistration, c *sealing.Credential) {
			c.Member = "another"
		}},
		"not by a token sealed for another object": {want: NeedsToken, leaves: func(left *registrationv1alpha1.ClusterRegistration, _ *sealing.Credential) {
			left.UID = "another"
		}},
		"not by a token that the hub rejects": {want: NeedsToken, leaves: func(_ *registrationv1alpha1.ClusterRegistration, c *sealing.Credential) {
			c.Token = "of another time"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := &rebuiltHub{tokenHub: newTokenHub(), t: t}
			server := httptest.NewTLSServer(hub)
			defer server.Close()
			e := New(Options{Member: fake.NewClientset()})
			id, err := e.store.identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			expires := time.Now().Add(time.Hour)
			if tc.expired {
				expires = time.Now().Add(-time.Hour)
			}
			if err := e.store.putCredential(t.Context(), &credential{hubAddress: addressOf(server), member: "m", token: "previous", expires: expires}); err != nil {
				t.Fatal(err)
			}
			if tc.leaves != nil {
				hub.left = &registrationv1alpha1.ClusterRegistration{
					TypeMeta:   metav1.TypeMeta{APIVersion: registrationv1alpha1.GroupVersion.String(), Kind: "ClusterRegistration"},
					ObjectMeta: metav1.ObjectMeta{Namespace: registrationv1alpha1.ReturningNamespace, Name: registrationv1alpha1.RequestName(id.key.PublicKey()), UID: "left"},
				}
				credential := sealing.Credential{Member: "m", Token: "stored", Expires: time.Now().Add(time.Hour)}
				tc.leaves(hub.left, &credential)
				if hub.left.Status.SealedToken, err = sealing.Seal(credential, id.key.PublicKey(), "left", ""); err != nil {
					t.Fatal(err)
				}
				hub.left.Status.Granted = true
			}
			if got := refusal.ReasonOf(e.enroll(t.Context())); got != tc.want {
				t.Errorf("it is refused for %q, want %q", got, tc.want)
			}
			if current := e.current.Load(); (current != nil) != (tc.want == "") || current != nil && (current.member != "m" || current.token != "stored+") {
				t.Errorf("the credential in use is %v", current)
			}
		})
	}
}
