// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// statusServer answers every request with an API status of this code.
func statusServer(t *testing.T, code int) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, code, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: map[int]metav1.StatusReason{
				401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound,
			}[code],
		})
	}))
	t.Cleanup(server.Close)
	return server
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func TestEnroll_DistinguishesProblems(t *testing.T) {
	refusing, forbidding, failing := statusServer(t, 401), statusServer(t, 403), statusServer(t, 500)
	missing := statusServer(t, 404)
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	tests := map[string]struct {
		url, ca string
		want    string
	}{
		"a token that the hub rejects":  {refusing.URL, caOf(refusing), TokenRefused},
		"a namespace of another token":  {forbidding.URL, caOf(forbidding), NamespaceRefused},
		"a hub without the API":         {missing.URL, caOf(missing), HubNotReady},
		"a hub that fails":              {failing.URL, caOf(failing), HubNotReady},
		"a CA that did not sign":        {refusing.URL, otherCA, HubNotTrusted},
		"a public CA that did not sign": {refusing.URL, "", HubNotTrusted},
		"no server":                     {gone.URL, caOf(gone), HubUnreachable},
		"a port that speaks no TLS":     {strings.Replace(plain.URL, "http:", "https:", 1), "", HubUnreachable},
	}
	key, err := sealing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &Bootstrap{AgentValues: registrationv1alpha1.AgentValues{
				APIServerURL: tc.url, APIServerCA: tc.ca, Token: "secret-token", ClusterNamespace: "clusters",
			}}
			_, err := New(Options{}).exchange(t.Context(), b, &identity{key: key}, "client")
			if got := refusal.ReasonOf(err); got != tc.want {
				t.Fatalf("got %q (%v), want %q", got, err, tc.want)
			}
			if !strings.Contains(err.Error(), tc.url) {
				t.Errorf("%q does not name the hub", err)
			}
			if strings.Contains(err.Error(), "secret-token") {
				t.Errorf("%q shows the token", err)
			}
		})
	}
}

// otherCA is a certificate that signed no server here.
const otherCA = `-----BEGIN CERTIFICATE-----
MIIBhTCCASugAwIBAgIQIRi6zePL6mKjOipn+dNuaTAKBggqhkjOPQQDAjASMRAw
DgYDVQQKEwdBY21lIENvMB4XDTE3MTAyMDE5NDMwNloXDTE4MTAyMDE5NDMwNlow
EjEQMA4GA1UEChMHQWNtZSBDbzBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABD0d
7VNhbWvZLWPuj/RtHFjvtJBEwOkhbN/BnnE8rnZR8+sbwnc/KhCk3FhnpHZnQz7B
5aETbbIgmuvewdjvSBSjYzBhMA4GA1UdDwEB/wQEAwICpDATBgNVHSUEDDAKBggr
BgEFBQcDATAPBgNVHRMBAf8EBTADAQH/MCkGA1UdEQQiMCCCDmxvY2FsaG9zdDo1
NDUzgg4xMjcuMC4wLjE6NTQ1MzAKBggqhkjOPQQDAgNIADBFAiEA2zpJEPQyz6/l
Wf86aX6PepsntZv2GYlA5UpabfT2EZICICpJ5h/iI+i341gBmLiAFQOyTDT+/wQc
6MF9+Yw1Yy0t
-----END CERTIFICATE-----
`

func TestStore_SignsWithThePreviousKeyWhenTheKeyIsReplaced(t *testing.T) {
	old, err := sealing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	private, err := old.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	member := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "agent", Name: KeySecret, UID: "1"},
		Data:       map[string][]byte{previousKeyKey: private},
	})
	s := &store{member: member, namespace: "agent"}
	id, err := s.identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if id.previous == nil || string(id.key.PublicKey()) == string(old.PublicKey()) {
		t.Fatal("there is no new key beside the previous one")
	}
	again, err := s.identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if string(again.key.PublicKey()) != string(id.key.PublicKey()) {
		t.Error("the new key is replaced each time")
	}

	b := &Bootstrap{AgentValues: registrationv1alpha1.AgentValues{ClusterNamespace: "clusters", Token: "t"}}
	request, err := desiredRequest(b, id, "client")
	if err != nil {
		t.Fatal(err)
	}
	verification, err := old.VerificationKey()
	if err != nil {
		t.Fatal(err)
	}
	statement, err := registrationv1alpha1.MoveStatement(request)
	if err != nil {
		t.Fatal(err)
	}
	if !sealing.Verify(verification, statement, request.Spec.PreviousSignature) {
		t.Error("The previous key has not signed the request")
	}

	if err := s.forgetPreviousKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id, err = s.identity(t.Context()); err != nil || id.previous != nil {
		t.Errorf("The previous key is still there (%v)", err)
	}
	request, err = desiredRequest(b, id, "client")
	if err != nil || request.Spec.PreviousSignature != nil {
		t.Errorf("A request is signed without a previous key (%v)", err)
	}
}

func TestReadGrant(t *testing.T) {
	key, err := sealing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := sealing.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	seal := func(uid types.UID) []byte {
		sealed, err := sealing.Seal(sealing.Credential{Member: "m", Token: "t"}, key.PublicKey(), uid, "client")
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	admissionResult := func(clientID string, sealed []byte, reason string) *registrationv1alpha1.ClusterRegistration {
		request := &registrationv1alpha1.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "request-x", UID: "uid"},
			Spec:       registrationv1alpha1.ClusterRegistrationSpec{ClientID: clientID},
		}
		request.Status.Granted, request.Status.SealedToken = sealed != nil, sealed
		if reason != "" {
			request.Status.Conditions = []metav1.Condition{{
				Type: registrationv1alpha1.RegistrationConditionGranted, Status: metav1.ConditionFalse, Reason: reason, Message: "what to do",
			}}
		}
		return request
	}
	tests := map[string]struct {
		request *registrationv1alpha1.ClusterRegistration
		key     *sealing.Key
		want    string
	}{
		"granted":                     {admissionResult("client", seal("uid"), ""), key, ""},
		"not processed yet":           {admissionResult("client", nil, ""), key, RegistrationPending},
		"the member is being created": {admissionResult("client", nil, registrationv1alpha1.RegistrationReasonWaiting), key, RegistrationPending},
		"another key has the cluster": {admissionResult("client", nil, registrationv1alpha1.RegistrationReasonConflict), key, RegistrationRefused},
		"sealed for another request":  {admissionResult("client", seal("uid-2"), ""), key, RegistrationRefused},
		"sealed for another key":      {admissionResult("client", seal("uid"), ""), other, RegistrationRefused},
		"of another client ID":        {admissionResult("former", seal("uid"), ""), key, RegistrationRefused},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			granted, err := readGrant(tc.request, &Bootstrap{}, &identity{key: tc.key}, "client")
			if got := refusal.ReasonOf(err); got != tc.want {
				t.Fatalf("got %q (%v), want %q", got, err, tc.want)
			}
			if tc.want == "" && (granted.member != "m" || granted.token != "t") {
				t.Errorf("credential of member %q", granted.member)
			}
		})
	}
}

func TestRenewIn(t *testing.T) {
	tests := map[string]struct{ left, interval, most time.Duration }{
		"a long lifetime is renewed after the interval": {7 * 24 * time.Hour, time.Hour, time.Hour},
		"a short lifetime is renewed after two thirds":  {15 * time.Minute, time.Hour, 10 * time.Minute},
		"an expired token is renewed at once":           {-time.Hour, time.Hour, time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 100 {
				got := renewIn(tc.left, tc.interval)
				if got > tc.most || got < tc.most*9/10 {
					t.Fatalf("got %v, want up to a tenth less than %v", got, tc.most)
				}
			}
		})
	}
}

func TestStore_CreatesTheKeyOnce(t *testing.T) {
	s := &store{member: fake.NewClientset(), namespace: "fleet-system"}
	first, err := s.identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if string(first.key.PublicKey()) != string(second.key.PublicKey()) || first.random != second.random || first.random == "" {
		t.Error("a second start created another key")
	}
}

// tokenHub grants a token in exchange for the last one that it granted.
type tokenHub struct {
	// valid has capacity one and contains the valid token.
	valid chan string
	// granted receives each granted token.
	granted chan string
	expires time.Time
}

func newTokenHub() *tokenHub {
	h := &tokenHub{valid: make(chan string, 1), granted: make(chan string, 10), expires: time.Now().Add(time.Hour)}
	h.valid <- "stored"
	return h
}

func (h *tokenHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	valid := <-h.valid
	if r.Header.Get("Authorization") != "Bearer "+valid {
		h.valid <- valid
		writeJSON(w, 401, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 401, Reason: metav1.StatusReasonUnauthorized})
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/namespaces/fleet-member-m/serviceaccounts/agent/token") {
		h.valid <- valid
		writeJSON(w, 200, corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}})
		return
	}
	h.valid <- valid + "+"
	h.granted <- valid + "+"
	writeJSON(w, 201, authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
		Status:   authenticationv1.TokenRequestStatus{Token: valid + "+", ExpirationTimestamp: metav1.NewTime(h.expires)},
	})
}

func TestEnroller_UsesAStoredCredentialAndRenewsItWhenRejected(t *testing.T) {
	tokens := newTokenHub()
	server := httptest.NewTLSServer(tokens)
	defer server.Close()
	member := fake.NewClientset()
	stored := &credential{hubAddress: hubAddress{server: server.URL, ca: []byte(caOf(server))}, member: "m", token: "stored", expires: time.Now().Add(time.Hour)}
	if err := (&store{member: member, namespace: "fleet-system"}).putCredential(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	e := New(Options{Member: member})
	if refusal.ReasonOf(e.Ready()) != NotStarted {
		t.Errorf("ready before it began: %v", e.Ready())
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()

	name, err := e.Member(t.Context())
	if err != nil || name != "m" {
		t.Fatalf("member %q: %v", name, err)
	}
	if err := e.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	config, err := e.HubConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.CoreV1().ConfigMaps("x").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Errorf("the hub refuses the current token: %v", err)
	}

	// A rejected token is replaced although the interval has not passed.
	<-tokens.granted
	e.current.Store(&credential{hubAddress: stored.hubAddress, member: "m", token: "stale", expires: stored.expires})
	if _, err := hub.CoreV1().ConfigMaps("x").Get(t.Context(), "x", metav1.GetOptions{}); err == nil {
		t.Error("the hub accepted a stale token")
	}
	<-tokens.granted
	for token := "stale"; token == "stale"; {
		if token, err = e.Token(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hub.CoreV1().ConfigMaps("x").Get(t.Context(), "x", metav1.GetOptions{}); err != nil {
		t.Errorf("the hub refuses the replacement: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestEnroller_StopsWhenTheMemberNameChanges(t *testing.T) {
	tokens := newTokenHub()
	server := httptest.NewTLSServer(tokens)
	defer server.Close()
	e := New(Options{Member: fake.NewClientset()})
	e.current.Store(&credential{hubAddress: hubAddress{server: server.URL}, member: "former"})
	err := e.use(t.Context(), &credential{hubAddress: hubAddress{server: server.URL, ca: []byte(caOf(server))}, member: "m", token: "stored"})
	if !errors.Is(err, ErrIdentityChanged) {
		t.Errorf("got %v, want ErrIdentityChanged", err)
	}
}
