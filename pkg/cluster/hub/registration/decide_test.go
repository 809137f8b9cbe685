// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/sealing"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
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
	record(&cluster.ObjectMeta, first, allowance{approved: true})
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
	record(&cluster.ObjectMeta, second, allowance{approved: true})
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

func TestRefuseAllowance_FirstKeyOwnsCluster(t *testing.T) {
	cluster := func(name, fingerprint string) *registrationv1alpha1.Cluster {
		c := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if fingerprint != "" {
			c.Annotations = map[string]string{AnnotationKey: fingerprint}
		}
		return c
	}
	conflict := registrationv1alpha1.RegistrationReasonConflict
	tests := map[string]struct {
		allowed allowance
		cluster *registrationv1alpha1.Cluster
		want    string
	}{
		"new client ID":                                     {allowance{}, nil, ""},
		"Cluster without a key":                             {allowance{}, cluster("edge", ""), ""},
		"Cluster with another key":                          {allowance{}, cluster("edge", "a"), conflict},
		"token for that Cluster transfers it":               {allowance{cluster: "edge"}, cluster("edge", "a"), ""},
		"token for that Cluster without a key":              {allowance{cluster: "edge"}, cluster("edge", ""), ""},
		"token for another Cluster, this one without a key": {allowance{cluster: "core"}, cluster("edge", ""), conflict},
		"token for a Cluster with another client ID":        {allowance{cluster: "edge"}, nil, conflict},
		"token for another Cluster does not transfer it":    {allowance{cluster: "core"}, cluster("edge", "a"), conflict},
		"token for a Cluster with the same prefix":          {allowance{cluster: "edge-1"}, cluster("edge", "a"), conflict},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(refuseAllowance(tc.allowed, tc.cluster)); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
	refused := refuseAllowance(allowance{}, cluster("edge", "a"))
	for _, remedy := range []string{AnnotationKey, registrationv1alpha1.AnnotationForCluster + "=edge"} {
		if !strings.Contains(refused.Message, remedy) {
			t.Errorf("message %q does not name the remedy %s", refused.Message, remedy)
		}
	}
}

func TestRefuseMember(t *testing.T) {
	now := metav1.Now()
	cluster := func(uid string) *registrationv1alpha1.Cluster {
		c := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{AnnotationMember: "edge"}}}
		if uid != "" {
			c.Annotations[AnnotationMemberUID] = uid
		}
		return c
	}
	mc := func(uid types.UID, deleted *metav1.Time) *clusterv1beta1.MemberCluster {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: uid, DeletionTimestamp: deleted}}
	}
	madeFor := func(cluster string) *clusterv1beta1.MemberCluster {
		made := mc("uid", nil)
		made.Annotations = map[string]string{AnnotationClusterUID: cluster}
		return made
	}
	conflict := registrationv1alpha1.RegistrationReasonConflict
	tests := map[string]struct {
		remembered string
		mc         *clusterv1beta1.MemberCluster
		want       string
	}{
		"no member yet":                   {"", nil, ""},
		"administrator removed the UID":   {"", mc("new", nil), ""},
		"member exists":                   {"uid", mc("uid", nil), ""},
		"member was deleted":              {"uid", nil, conflict},
		"member is leaving":               {"uid", mc("uid", &now), conflict},
		"other member with the same name": {"uid", mc("new", nil), conflict},
		"member of another Cluster":       {"uid", madeFor("other"), conflict},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := reasonOf(refuseMember(cluster(tc.remembered), tc.mc)); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
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

func TestLifeOf(t *testing.T) {
	created := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	ttl := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	tests := map[string]struct {
		ttl         *metav1.Duration
		age         time.Duration
		over        bool
		seconds     int64
		requestable bool
	}{
		"null is infinite":                     {nil, time.Hour, false, 0, false},
		"zero is infinite":                     {ttl(0), time.Hour, false, 0, false},
		"negative is infinite":                 {ttl(-time.Hour), 2 * time.Hour, false, 0, false},
		"remaining lifetime is requested":      {ttl(time.Hour), 10 * time.Minute, false, 3000, true},
		"parts of a second count":              {ttl(time.Hour), time.Millisecond, false, 3600, true},
		"minimum of the API server":            {ttl(5 * time.Second), 0, false, 600, true},
		"beyond the maximum of the API server": {ttl(200 * 365 * 24 * time.Hour), 0, false, 200 * 365 * 24 * 3600, false},
		"expired":                              {ttl(time.Hour), time.Hour, true, 600, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)},
				Spec:       registrationv1alpha1.ClusterRegistrationTokenSpec{TTL: tc.ttl},
			}
			life := lifeOf(token, created.Add(tc.age))
			if life.over() != tc.over {
				t.Errorf("over: got %v, want %v", life.over(), tc.over)
			}
			seconds, ok := requestSeconds(life)
			if seconds != tc.seconds || ok != tc.requestable {
				t.Errorf("request: got %d, %v, want %d, %v", seconds, ok, tc.seconds, tc.requestable)
			}
			status := desiredTokenStatus(token, Defaults{}, life, issuedValues)
			if (status.Expires == nil) != life.infinite {
				t.Errorf("status.expires: got %v for an infinite life: %v", status.Expires, life.infinite)
			}
		})
	}
}

func TestCredentialExpiry(t *testing.T) {
	granted := metav1.NewTime(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	request := &registrationv1alpha1.ClusterRegistration{}
	if got, want := credentialExpiry(request, granted, time.Hour), granted.Add(time.Hour); !got.Equal(want) {
		t.Errorf("as requested: got %v, want %v", got, want)
	}
	request.Annotations = map[string]string{AnnotationCredentialExpires: "2026-08-01T12:10:00Z"}
	if got, want := credentialExpiry(request, granted, time.Hour), granted.Add(10*time.Minute); !got.Equal(want) {
		t.Errorf("less than requested: got %v, want %v", got, want)
	}
}

func TestDesiredClusterStatus_LastSeenAdvancesInSteps(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	cluster := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Name: "edge", Annotations: map[string]string{AnnotationMember: "edge", AnnotationMemberUID: "uid"},
	}}
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "uid"}}

	cluster.Status = desiredClusterStatus(cluster, mc, start)
	if cluster.Status.Display.State != registrationv1alpha1.ClusterStateWaitCheckIn {
		t.Errorf("state before the first report: %q", cluster.Status.Display.State)
	}
	mc.Status = clusterv1beta1.MemberClusterStatus{
		Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}},
		AgentStatus: []clusterv1beta1.AgentStatus{{
			Type:                  clusterv1beta1.MemberAgent,
			Conditions:            []metav1.Condition{{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue}},
			LastReceivedHeartbeat: metav1.NewTime(start),
		}},
	}
	cluster.Status = desiredClusterStatus(cluster, mc, start)
	if cluster.Status.Display.State != "" || cluster.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Fatalf("not ready after the first report: %+v", cluster.Status)
	}

	seen := cluster.DeepCopy()
	mc.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(start.Add(lastSeenStep - time.Second))
	if diff := cmp.Diff(seen.Status, desiredClusterStatus(seen, mc, start.Add(time.Hour))); diff != "" {
		t.Errorf("heartbeat within the step changed the status (-want +got):\n%s", diff)
	}
	mc.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(start.Add(lastSeenStep))
	if got := desiredClusterStatus(seen, mc, start).Agent.LastSeen; !got.Equal(&mc.Status.AgentStatus[0].LastReceivedHeartbeat) {
		t.Errorf("lastSeen did not advance: %v", got)
	}
	mc.Status.Conditions[0].Status = metav1.ConditionUnknown
	mc.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(start.Add(time.Minute))
	if got := desiredClusterStatus(seen, mc, start).Agent.LastSeen; !got.Equal(&mc.Status.AgentStatus[0].LastReceivedHeartbeat) {
		t.Errorf("lastSeen of a disconnected member = %v", got)
	}
	const silent = "no heartbeat of the agent since 2026-08-01T12:01:00Z: see the condition Joined of MemberCluster edge"
	if got := desiredReady(seen, mc); got.Reason != reasonNotJoined || got.Message != silent {
		t.Errorf("disconnected agent: %s: %s", got.Reason, got.Message)
	}
}
