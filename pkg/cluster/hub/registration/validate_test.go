// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/test/support/bomb"
)

func requestOf(t *testing.T, change func(*registrationv1alpha1.ClusterRegistration)) *registrationv1alpha1.ClusterRegistration {
	t.Helper()
	key, err := sealing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request := &registrationv1alpha1.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: registrationv1alpha1.RequestName(key.PublicKey())},
		Spec:       registrationv1alpha1.ClusterRegistrationSpec{ClientID: "client", PublicKey: key.PublicKey()},
	}
	change(request)
	return request
}

func applicantOf(request *registrationv1alpha1.ClusterRegistration, allowed allowance) *applicant {
	return &applicant{request: request, fingerprint: sealing.Fingerprint(request.Spec.PublicKey), allowed: allowed}
}

func reasonOf(refused *refusal.Refusal) string {
	if refused == nil {
		return ""
	}
	return refused.Reason
}

func TestRefuseRequest(t *testing.T) {
	tests := map[string]struct {
		change func(*registrationv1alpha1.ClusterRegistration)
		names  string
	}{
		"valid request": {func(*registrationv1alpha1.ClusterRegistration) {}, ""},
		"invalid key":   {func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.PublicKey = []byte("x") }, "spec.publicKey"},
		"no key":        {func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.PublicKey = nil }, "spec.publicKey"},
		"wrong name":    {func(r *registrationv1alpha1.ClusterRegistration) { r.Name = "request-x" }, "the name must be"},
		"no client ID":  {func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClientID = "" }, "spec.clientID"},
		"too long client ID": {func(r *registrationv1alpha1.ClusterRegistration) {
			r.Spec.ClientID = strings.Repeat("x", maxClientID+1)
		}, "spec.clientID"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			refused := refuseRequest(requestOf(t, tc.change))
			switch {
			case tc.names == "" && refused != nil:
				t.Errorf("refused: %s", refused.Message)
			case tc.names != "" && reasonOf(refused) != registrationv1alpha1.RegistrationReasonInvalid:
				t.Errorf("reason %q, want %q", reasonOf(refused), registrationv1alpha1.RegistrationReasonInvalid)
			case refused != nil && !strings.Contains(refused.Message, tc.names):
				t.Errorf("message %q does not name %q", refused.Message, tc.names)
			}
		})
	}
}

func TestIsTransferred_OnlyByOwningKey(t *testing.T) {
	holder, stranger := newKey(t), newKey(t)
	verification, err := holder.VerificationKey()
	if err != nil {
		t.Fatal(err)
	}
	cluster := &registrationv1alpha1.Cluster{}
	first := requestOf(t, func(r *registrationv1alpha1.ClusterRegistration) {
		r.Spec.PublicKey, r.Spec.VerificationKey = holder.PublicKey(), verification
	})
	record(&cluster.ObjectMeta, applicantOf(first, allowance{approved: true}))
	signedBy := func(key *sealing.Key, change func(*registrationv1alpha1.ClusterRegistration)) *registrationv1alpha1.ClusterRegistration {
		return requestOf(t, func(r *registrationv1alpha1.ClusterRegistration) {
			statement, err := registrationv1alpha1.MoveStatement(r)
			if err != nil {
				t.Fatal(err)
			}
			if r.Spec.PreviousSignature, err = key.Sign(statement); err != nil {
				t.Fatal(err)
			}
			change(r)
		})
	}
	unchanged := func(*registrationv1alpha1.ClusterRegistration) {}
	for what, tc := range map[string]struct {
		request *registrationv1alpha1.ClusterRegistration
		want    bool
	}{
		"signed by the owner":             {signedBy(holder, unchanged), true},
		"signed by another key":           {signedBy(stranger, unchanged), false},
		"not signed":                      {requestOf(t, unchanged), false},
		"for another client ID":           {signedBy(holder, func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClientID = "other" }), false},
		"for another key":                 {signedBy(holder, func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.PublicKey = stranger.PublicKey() }), false},
		"in another namespace":            {signedBy(holder, func(r *registrationv1alpha1.ClusterRegistration) { r.Namespace = "other" }), false},
		"with the proof of another token": {signedBy(holder, func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.TokenProof = []byte("x") }), true},
	} {
		if got := isTransferred(cluster, tc.request); got != tc.want {
			t.Errorf("%s: got %v", what, got)
		}
	}
	second := requestOf(t, unchanged)
	record(&cluster.ObjectMeta, applicantOf(second, allowance{approved: true}))
	if isTransferred(cluster, signedBy(holder, unchanged)) {
		t.Error("former owner transferred a Cluster of another key")
	}
}

func newKey(t *testing.T) *sealing.Key {
	t.Helper()
	key, err := sealing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestClusterOf(t *testing.T) {
	cluster := func(name, clientID string) registrationv1alpha1.Cluster {
		return registrationv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: registrationv1alpha1.ClusterSpec{ClientID: clientID},
		}
	}
	clusters := []registrationv1alpha1.Cluster{cluster("z", "id"), cluster("b", "id"), cluster("a", "other"), cluster("n", "")}
	tests := map[string]struct{ clientID, want string }{
		"the first by name":    {"id", "b"},
		"the only one":         {"other", "a"},
		"none":                 {"unknown", ""},
		"prefix is another ID": {"i", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if found := clusterOf(clusters, tc.clientID); found != nil {
				got = found.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIsProven(t *testing.T) {
	request := requestOf(t, func(r *registrationv1alpha1.ClusterRegistration) {
		r.Spec.ClusterLabels = map[string]string{"env": "prod"}
	})
	proof, err := registrationv1alpha1.TokenProof("token", request)
	if err != nil {
		t.Fatal(err)
	}
	request.Spec.TokenProof = proof
	secret := func(values string) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte(values)}}
	}
	tests := map[string]struct {
		values string
		change func(*registrationv1alpha1.ClusterRegistration)
		want   bool
	}{
		"unchanged":           {"token: token", func(*registrationv1alpha1.ClusterRegistration) {}, true},
		"other token":         {"token: other", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"no token":            {"token: ''", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"unreadable values":   {"{", func(*registrationv1alpha1.ClusterRegistration) {}, false},
		"other namespace":     {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Namespace = "other" }, false},
		"name of another key": {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Name = "request-x" }, false},
		"other client ID":     {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClientID = "x" }, false},
		"other labels":        {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.ClusterLabels = nil }, false},
		"truncated proof":     {"token: token", func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.TokenProof = proof[:31] }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			changed := request.DeepCopy()
			tc.change(changed)
			if got := isProven(secret(tc.values), changed); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRefuseNamespace_AllowedNamespaces(t *testing.T) {
	tests := map[string]struct {
		allowed []string
		refused bool
	}{
		"no restriction":    {nil, false},
		"allowed namespace": {[]string{"other", "clusters"}, false},
		"other namespace":   {[]string{"other"}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if refused := refuseNamespace(tc.allowed, "clusters"); (refused != nil) != tc.refused {
				t.Errorf("got %v, want refused: %v", refused, tc.refused)
			}
		})
	}
}

// Users who can write Secrets in a registration namespace control the content of values.
func TestIsProven_RejectsValuesWithExpandingAliases(t *testing.T) {
	request := requestOf(t, func(*registrationv1alpha1.ClusterRegistration) {})
	secret := &corev1.Secret{Data: map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte("token: token\n" + bomb.Secret())}}
	bomb.Check(t, func() {
		if isProven(secret, request) {
			t.Error("the values were accepted")
		}
	})
}

func TestRefuseToken(t *testing.T) {
	const unproven, waiting = registrationv1alpha1.RegistrationReasonUnproven, registrationv1alpha1.RegistrationReasonWaiting
	request := requestOf(t, func(r *registrationv1alpha1.ClusterRegistration) {
		r.Labels = map[string]string{registrationv1alpha1.LabelRegistrationToken: "token"}
	})
	var err error
	if request.Spec.TokenProof, err = registrationv1alpha1.TokenProof("bearer", request); err != nil {
		t.Fatal(err)
	}
	token := &registrationv1alpha1.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Name: "token", UID: "uid"}}
	secret := func(owner types.UID, values string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}},
			Data:       map[string][]byte{registrationv1alpha1.RegistrationValuesKey: []byte(values)},
		}
	}
	unchanged := func(*registrationv1alpha1.ClusterRegistration) {}
	tests := map[string]struct {
		change func(*registrationv1alpha1.ClusterRegistration)
		token  *registrationv1alpha1.ClusterRegistrationToken
		secret *corev1.Secret
		want   string
	}{
		"proven":                      {unchanged, token, secret("uid", "token: bearer"), ""},
		"no name of a token":          {func(r *registrationv1alpha1.ClusterRegistration) { r.Labels = nil }, nil, nil, unproven},
		"no proof":                    {func(r *registrationv1alpha1.ClusterRegistration) { r.Spec.TokenProof = nil }, token, secret("uid", "token: bearer"), unproven},
		"token expired or deleted":    {unchanged, nil, nil, unproven},
		"Secret is being re-created":  {unchanged, token, nil, waiting},
		"Secret of another token":     {unchanged, token, secret("other", "token: bearer"), unproven},
		"proof with a former token":   {unchanged, token, secret("uid", "token: newer"), unproven},
		"Secret with invalid content": {unchanged, token, secret("uid", "{"), unproven},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			changed := request.DeepCopy()
			tc.change(changed)
			if got := reasonOf(refuseToken(changed, tc.token, tc.secret)); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
}
