// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membermirror

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		agreed, arrived           string
		byMember, byCluster, want bool
	}{
		"nobody changed it":          {accepted, "", true, true, true},
		"nobody changed it, waiting": {waiting, "", false, false, false},
		"the taint was taken away":   {waiting, "1", true, false, true},
		"the taint came":             {accepted, "1", false, true, false},
		"it was accepted":            {waiting, "", false, true, true},
		"it was denied":              {accepted, "", true, false, false},
		"both say so":                {waiting, "", true, true, true},
		"nothing was agreed yet":     {"", "", true, false, true},
		"accepted, on its way":       {accepted + pending + "2", "1", false, true, true},
		"denied, on its way":         {waiting + pending + "2", "", true, false, false},
		"denied while it was":        {accepted + pending + "2", "1", false, false, false},
		"denied when it had arrived": {accepted + pending + "2", "2", true, false, false},
		"the taint was taken away before anybody wrote down that the denial had arrived": {waiting + pending + "2", "2", true, false, true},
	} {
		if got := decide(tc.agreed, tc.arrived, tc.byMember, tc.byCluster); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// model is the two objects, and a reconciliation that may stop at any step. Its writes fail when
// somebody else wrote since it began, as with a resourceVersion.
type model struct {
	member, cluster               bool
	decided, arrived              string
	memberVersion, clusterVersion int
}

// steps are the writes of a reconciliation, in order. Others may write between any two.
func (m *model) steps() []func() bool {
	letIn := decide(m.decided, m.arrived, m.member, m.cluster)
	memberVersion, clusterVersion := m.memberVersion, m.clusterVersion
	onItsWay := decided(m.decided, fmt.Sprint(letIn), m.arrived, fmt.Sprint(m.clusterVersion))
	write := func(decided string) func() bool {
		return func() bool {
			if m.clusterVersion != clusterVersion {
				return false
			}
			m.cluster, m.decided = letIn, decided
			m.clusterVersion++
			clusterVersion++
			return true
		}
	}
	if m.member == letIn {
		return []func() bool{write(fmt.Sprint(letIn))}
	}
	return []func() bool{write(onItsWay), func() bool {
		if m.memberVersion != memberVersion {
			return false
		}
		m.member = letIn
		_, m.arrived, _ = strings.Cut(onItsWay, pending)
		m.memberVersion++
		return true
	}, write(fmt.Sprint(letIn))}
}

func (m *model) settle() {
	for range 3 {
		for _, step := range m.steps() {
			step()
		}
	}
}

// Whatever is written in which order, and wherever a reconciliation is stopped or overtaken, in the
// end both agree. The last write counts: on a ManagedCluster that was reconciled since its last
// change, and on a MemberCluster without a decision in transit.
func TestProperty_DecisionsConverge(t *testing.T) {
	for seed := range uint64(5000) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := &model{member: random.IntN(2) == 0}
		m.settle()
		var last, judged bool
		for range 1 + random.IntN(6) {
			steps := m.steps()
			stopped := random.IntN(len(steps) + 1)
			for _, step := range steps[:stopped] {
				step()
			}
			last = random.IntN(2) == 0
			if random.IntN(2) == 0 {
				decision, _, _ := strings.Cut(m.decided, pending)
				judged = last != m.cluster && decision == fmt.Sprint(m.cluster)
				m.cluster = last
				m.clusterVersion++
			} else {
				decision, id, onItsWay := strings.Cut(m.decided, pending)
				judged = last != m.member && decision == fmt.Sprint(m.member) && m.cluster == m.member && (!onItsWay || id == m.arrived)
				m.member = last
				m.memberVersion++
			}
			for _, step := range steps[stopped:] {
				if !step() {
					break
				}
			}
		}
		m.settle()
		if m.member != m.cluster || m.decided != fmt.Sprint(m.member) {
			t.Fatalf("seed %d: they differ: %+v", seed, m)
		}
		if judged && m.member != last {
			t.Fatalf("seed %d: %v was written last, %+v", seed, last, m)
		}
	}
}

func aMember() *clusterv1beta1.MemberCluster {
	value := func(text string) clusterv1beta1.PropertyValue { return clusterv1beta1.PropertyValue{Value: text} }
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Labels: map[string]string{"env": "prod"}},
		Status: clusterv1beta1.MemberClusterStatus{
			Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
				clusterv1beta1.PropertyKubernetesVersion: value("v1.36.3"), clusterv1beta1.PropertyEntrypoint: value("https://a:6443"),
				"region": value("eu"), "id.k8s.io": value("x"),
			},
			Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}},
			AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue},
			}}},
		},
	}
}

func TestDesired_FollowsMemberAndIsStable(t *testing.T) {
	member, cluster := aMember(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"of": "people"}}}
	desired(cluster, member, true)
	if !Shows(cluster, member) || !cluster.Spec.HubAcceptsClient || cluster.Spec.ManagedClusterClientConfigs[0].URL != "https://a:6443" {
		t.Errorf("got %+v", cluster)
	}
	if diff := cmp.Diff(map[string]string{"env": "prod", "of": "people"}, cluster.Labels); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	desiredStatus(&cluster.Status, member)
	atRest := cluster.DeepCopy()
	desiredStatus(&cluster.Status, member)
	if diff := cmp.Diff(atRest, cluster); diff != "" {
		t.Errorf("nothing changed, and the status is written twice (-before +after)\n%s", diff)
	}
	want := []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}, {Name: "region", Value: "eu"}}
	if diff := cmp.Diff(want, cluster.Status.ClusterClaims); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again := cluster.DeepCopy()
	desired(again, member, true)
	if diff := cmp.Diff(cluster, again); diff != "" {
		t.Errorf("nothing changed, and this is written (-before +after)\n%s", diff)
	}
	member.Labels = map[string]string{"tier": "1"}
	desired(cluster, member, true)
	if diff := cmp.Diff(map[string]string{"tier": "1", "of": "people"}, cluster.Labels); diff != "" {
		t.Errorf("after the member's labels changed (-want +got)\n%s", diff)
	}
}

func TestIsShownYet_WhenMemberWaitsOrHasReported(t *testing.T) {
	waiting := []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule}}
	for name, tc := range map[string]struct {
		change func(*clusterv1beta1.MemberCluster)
		shown  bool
		taints []string
	}{
		"it has joined": {func(*clusterv1beta1.MemberCluster) {}, true, nil},
		"unhealthy": {func(m *clusterv1beta1.MemberCluster) {
			m.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
		}, true, []string{clusterv1.TaintUnavailable}},
		"it is silent":         {func(m *clusterv1beta1.MemberCluster) { m.Status.Conditions[0].Status = metav1.ConditionUnknown }, true, []string{clusterv1.TaintUnreachable}},
		"its agent never came": {func(m *clusterv1beta1.MemberCluster) { m.Status = clusterv1beta1.MemberClusterStatus{} }, false, []string{clusterv1.TaintUnreachable}},
		"it waits for approval": {func(m *clusterv1beta1.MemberCluster) {
			m.Status, m.Spec.Taints = clusterv1beta1.MemberClusterStatus{}, waiting
		}, true, []string{clusterv1.TaintUnreachable}},
	} {
		member, cluster := aMember(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		tc.change(member)
		begin(cluster, member)
		var taints []string
		for _, taint := range cluster.Spec.Taints {
			taints = append(taints, taint.Key)
		}
		if diff := cmp.Diff(tc.taints, taints); diff != "" || isShownYet(member) != tc.shown || len(cluster.Finalizers) != 2 {
			t.Errorf("%s: shown %v, finalizers %v, taints (-want +got)\n%s", name, isShownYet(member), cluster.Finalizers, diff)
		}
	}
}

func TestDesired_MemberDoesNotChooseItsSet(t *testing.T) {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u", Labels: map[string]string{
		"env": "prod", clusterv1.ClusterSetLabel: "payments", clusterv1.ClusterNameLabel: "other", clusterv1.AddOnLabelPrefix + "x": "available"}}}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{clusterv1.ClusterSetLabel: "default"}}}
	desired(cluster, member, true)
	want := map[string]string{"env": "prod", clusterv1.ClusterSetLabel: "default"}
	if diff := cmp.Diff(want, cluster.Labels); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	delete(member.Labels, clusterv1.ClusterSetLabel)
	desired(cluster, member, true)
	if diff := cmp.Diff(want, cluster.Labels); diff != "" {
		t.Errorf("labels when the member lost its own (-want +got)\n%s", diff)
	}
}

func TestClaimsOf_AreLimited(t *testing.T) {
	member := aMember()
	for i := range 30 {
		member.Status.Properties[clusterv1beta1.PropertyName(fmt.Sprintf("c%02d", i))] = clusterv1beta1.PropertyValue{Value: "v"}
	}
	claims := claimsOf(member)
	if len(claims) != 1+maxCustomClaims || claims[0].Name != "id.k8s.io" || claims[20].Name != "c19" {
		t.Errorf("got %d claims %v", len(claims), claims)
	}
}

func TestAvailableOf(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1beta1.MemberCluster)
		want   string
	}{
		"well": {func(*clusterv1beta1.MemberCluster) {}, "True/ManagedClusterAvailable"},
		"unhealthy": {func(m *clusterv1beta1.MemberCluster) {
			m.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
		}, "False/ManagedClusterKubeAPIServerUnavailable"},
		"silent":           {func(m *clusterv1beta1.MemberCluster) { m.Status.Conditions[0].Status = metav1.ConditionUnknown }, "Unknown/ManagedClusterLeaseUpdateStopped"},
		"never reported":   {func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus = nil }, ""},
		"has not said how": {func(m *clusterv1beta1.MemberCluster) { m.Status.AgentStatus[0].Conditions = nil }, ""},
	} {
		member, got := aMember(), ""
		tc.change(member)
		if condition := availableOf(member); condition != nil {
			got = string(condition.Status) + "/" + condition.Reason
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// The reporter of a member is identified by its ManagedCluster, and there is none once the member's
// own account reports.
func TestForeignUser_IdentifiesTheAgent(t *testing.T) {
	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	for reason, tc := range map[string]struct {
		identity rbacv1.Subject
		want     string
	}{
		"the account that the hub made":     {identity: account("fleet-member-a", "agent")},
		"an account that others keep":       {identity: account("fleet-system", "a"), want: "system:serviceaccount:fleet-system:a"},
		"the account of another member":     {identity: account("fleet-member-b", "agent"), want: "system:serviceaccount:fleet-member-b:agent"},
		"a user":                            {identity: rbacv1.Subject{Kind: rbacv1.UserKind, Name: "cloud"}, want: "cloud"},
		"a group, which is no single user":  {identity: rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "clouds"}},
		"nobody, as the hub says elsewhere": {},
	} {
		cluster, member := &clusterv1.ManagedCluster{}, aMember()
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, IdentityAnnotation, "before")
		member.Spec.Identity = tc.identity
		desired(cluster, member, true)
		if got, said := cluster.Annotations[IdentityAnnotation]; got != tc.want || said != (tc.want != "") {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}
