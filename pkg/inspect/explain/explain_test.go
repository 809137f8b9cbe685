// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// placed is a placement that is bound to member m.
func placed(change func(*Facts, *placementv1beta1.ClusterResourcePlacement, *placementv1beta1.ClusterResourceBinding)) *Facts {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	p.Status.Conditions = []metav1.Condition{condition("ClusterResourcePlacementScheduled", metav1.ConditionTrue, "", "")}
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.Spec.TargetCluster, b.Spec.State = "m", placementv1beta1.BindingBound
	b.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionAvailable, metav1.ConditionTrue, "", "")}
	f := &Facts{Placement: p, Name: "shop", Bindings: []placementv1beta1.BindingObject{b}, Member: "m"}
	if change != nil {
		change(f, p, b)
	}
	return f
}

// failing is an object that failed, in a condition.
func failing(kind, reason, message string) *Facts {
	return placed(func(_ *Facts, _ *placementv1beta1.ClusterResourcePlacement, b *placementv1beta1.ClusterResourceBinding) {
		b.Status.Conditions = []metav1.Condition{condition(kind, metav1.ConditionFalse, "NotAll", "Work is not")}
		b.Status.FailedPlacements = []placementv1beta1.FailedResourcePlacement{{
			ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: "Deployment", Namespace: "shop", Name: "web"},
			Condition:          condition(kind, metav1.ConditionFalse, reason, message),
		}}
	})
}

// silent is a member without heartbeat.
func silent(name string) clusterv1beta1.MemberCluster {
	m := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.Conditions = []metav1.Condition{condition(clusterv1beta1.ConditionJoined, metav1.ConditionUnknown, "MemberClusterJoinStateUnknown", "no heartbeat since noon")}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
	return m
}

// TestPlacement_ReasonAndRemedy covers problems that test/integration/plugin cannot cause, and the
// exact text of some that it can.
func TestPlacement_ReasonAndRemedy(t *testing.T) {
	const applied, available = placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable
	for name, test := range map[string]struct {
		facts *Facts
		want  string
	}{
		"no problems": {placed(nil), ""},
		"a wrong image": {failing(available, "ManifestNotAvailableYet", `0 of 1 replicas are available; Pod "web-1": ImagePullBackOff: Back-off pulling image "web:none"`),
			"Deployment shop/web on member m: not available: 0 of 1 replicas are available; Pod \"web-1\": ImagePullBackOff: Back-off pulling image \"web:none\". Remedy: correct the image of Deployment shop/web on the hub, or give member m access to the registry"},
		"a crash": {failing(available, "ManifestNotAvailableYet", `Pod "web-1": CrashLoopBackOff: back-off 10s restarting failed container`), "Remedy: check its log: kubectl fleetgate logs deployment/web -n shop --member m"},
		"a permission that the agent lacks": {failing(applied, "ManifestApplyFailed", `The agent cannot create deployments of the member: its role lacks the rule {apiGroups: ["apps"]}`),
			"Remedy: grant the agent on member m the permission named in the message"},
		"a co-owner":           {failing(applied, placementv1beta1.ReasonFailedToTakeOver, "it is another's"), "Remedy: check whenToTakeOver and allowCoOwnership"},
		"a reserved namespace": {failing(applied, placementv1beta1.ReasonReserved, "this namespace is the fleet's"), "Remedy: remove Deployment shop/web from the placement"},
		"an unknown reason":    {failing(applied, "Strange", "it is strange"), "Remedy: look up the reason in docs/reference/reasons.md and inspect the object: kubectl fleetgate get deployment/web -n shop --member m"},
		"a member without heartbeat": {placed(func(f *Facts, _ *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			f.Members = []clusterv1beta1.MemberCluster{silent("m")}
		}), "placement shop on member m: not delivered: the member's agent does not report: no heartbeat since noon. Remedy: start the agent, or check the agent's log"},
		"the member is paused": {placed(func(f *Facts, _ *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			f.Members = []clusterv1beta1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{placementv1beta1.PausedAnnotation: "true"}}}}
		}), "Remedy: resume the member: kubectl annotate membercluster m fleetgate.io/paused-"},
		"the placement is deleted": {placed(func(_ *Facts, p *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}), "the placement is being deleted; 1 members still have to remove its resources"},
		"no gateway": {placed(func(_ *Facts, p *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			p.Status.Conditions = nil
		}), "no gateway has processed the placement. Remedy: check that a gateway is the leader: kubectl fleetgate diagnose"},
		"kinds that the author is not allowed to read, of a gateway of the previous version": {placed(func(_ *Facts, p *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			p.Status.Conditions = append(p.Status.Conditions, condition(placementv1beta1.ConditionResourcesWithheld, metav1.ConditionTrue, placementv1beta1.PreviousAuthorForbidden, "Selected and not placed: secrets"))
		}), "Selected and not placed: secrets. Remedy: have a user who can read these kinds"},
		"kinds that the author is not allowed to read": {placed(func(_ *Facts, p *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			p.Status.Conditions = append(p.Status.Conditions, condition(placementv1beta1.ConditionResourcesWithheld, metav1.ConditionTrue, "AuthorForbidden", "Selected and not placed: secrets"))
		}), "Selected and not placed: secrets. Remedy: have a user who can read these kinds"},
		"a rollout that has not started": {placed(func(_ *Facts, _ *placementv1beta1.ClusterResourcePlacement, b *placementv1beta1.ClusterResourceBinding) {
			b.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionRolloutStarted, metav1.ConditionFalse, "RolloutNotStartedYet", "others first")}
		}), "not rolled out: others first. Remedy: wait until the members being updated are available"},
		"a member that has not reported": {placed(func(_ *Facts, _ *placementv1beta1.ClusterResourcePlacement, b *placementv1beta1.ClusterResourceBinding) {
			b.Status.Conditions = []metav1.Condition{condition(applied, metav1.ConditionTrue, "", "")}
		}), "placement shop on member m: in progress: the member has not reported a status yet. Remedy: wait"},
		"ReportDiff that has reported": {placed(func(_ *Facts, p *placementv1beta1.ClusterResourcePlacement, b *placementv1beta1.ClusterResourceBinding) {
			p.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
			b.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionDiffReported, metav1.ConditionTrue, "", "")}
		}), ""},
		"a binding to be removed": {placed(func(_ *Facts, _ *placementv1beta1.ClusterResourcePlacement, b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingUnscheduled
		}), "the policy no longer selects the member"},
		"an unapproved member": {placed(func(f *Facts, _ *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			f.Bindings = nil
			f.Members = []clusterv1beta1.MemberCluster{{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1beta1.MemberClusterSpec{Taints: []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnapproved, Effect: corev1.TaintEffectNoSchedule}}}}}
		}), "Remedy: kubectl fleetgate approve m"},
		"a topology spread": {placed(func(f *Facts, _ *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			f.Bindings, f.Refusals = nil, map[string]Refusal{"m": {Rule: "TopologySpreadConstraints", Reason: "violated"}}
		}), "Remedy: add members in more topology domains"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if problems := Placement(test.facts); len(problems) > 0 {
				got = problems[0].String()
			}
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestPlacement_MergesEqualProblemsOfMembers(t *testing.T) {
	f := failing(placementv1beta1.ConditionApplied, "ManifestApplyFailed", "exceeded quota")
	f.Member = ""
	for _, name := range []string{"n", "o"} {
		b := f.Bindings[0].DeepCopyObject().(*placementv1beta1.ClusterResourceBinding)
		b.Spec.TargetCluster = name
		f.Bindings = append(f.Bindings, b)
	}
	problems := Placement(f)
	if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), "Deployment shop/web on member m (and 2 more): not applied: exceeded quota. Remedy: raise") {
		t.Errorf("got %v", problems)
	}
}

func TestShownBy_ReturnsRunnableCommand(t *testing.T) {
	of := func(group, kind, namespace, name string) *placementv1beta1.ResourceIdentifier {
		return &placementv1beta1.ResourceIdentifier{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	for name, test := range map[string]struct {
		answer    Problem
		verb      string
		placement string
		want      string
	}{
		"a workload":                   {Problem{Member: "m", Of: of("apps", "Deployment", "shop", "web")}, "logs", "shop", "kubectl fleetgate logs deployment.apps/web -n shop --member m"},
		"a kind without log":           {Problem{Member: "m", Of: of("", "Service", "shop", "web")}, "logs", "shop", "kubectl fleetgate get service/web -n shop --member m"},
		"a cluster-scoped object":      {Problem{Member: "m", Of: of("rbac.authorization.k8s.io", "ClusterRole", "", "system:web")}, "get", "", "kubectl fleetgate get clusterrole.rbac.authorization.k8s.io/system:web --member m"},
		"no object":                    {Problem{Member: "m"}, "get", "shop", "kubectl fleetgate tree shop --member m"},
		"neither object nor member":    {Problem{}, "get", "team/shop", "kubectl fleetgate tree team/shop"},
		"a name with shell characters": {Problem{Member: "m", Of: of("", "ConfigMap", "shop", "web; rm -rf $HOME")}, "get", "shop", "kubectl fleetgate tree shop --member m"},
		"a kind with a line feed":      {Problem{Member: "m", Of: of("", "ConfigMap\n", "shop", "web")}, "get", "", "kubectl fleetgate members m"},
	} {
		if got := test.answer.shownBy(test.verb, test.placement); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestProblem_KeepsUntrustedTextOnOneLine(t *testing.T) {
	a := Problem{Object: "ConfigMap \u202eevil\x1b[2J", Member: "m\nn", Reason: strings.Repeat("long ", 10000) + "\r\n", Remedy: "nothing"}
	got := a.String()
	if strings.ContainsAny(got, "\n\r\x1b\u202e") || len(got) > 2000 {
		t.Errorf("got %d bytes: %q", len(got), got[:100])
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31mb\u2066c\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := untrusted.Line(text); strings.ContainsAny(got, "\n\r\t\x1b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f") || untrusted.Line(got) != got {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

func TestMember_ReasonAndRemedy(t *testing.T) {
	joined := func(change func(*MemberFacts)) *MemberFacts {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Status.Conditions = []metav1.Condition{condition(clusterv1beta1.ConditionJoined, metav1.ConditionTrue, "", "")}
		m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
		f := &MemberFacts{Name: "m", Member: m, Tunnel: &gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}}
		if change != nil {
			change(f)
		}
		return f
	}
	lost := silent("m")
	good := []registrationv1alpha1.ClusterRegistrationToken{{Status: registrationv1alpha1.ClusterRegistrationTokenStatus{
		Conditions: []metav1.Condition{condition(registrationv1alpha1.TokenConditionReady, metav1.ConditionTrue, "Issued", "")}}}}
	for name, test := range map[string]struct {
		facts *MemberFacts
		want  string
	}{
		"healthy":           {joined(nil), ""},
		"without heartbeat": {&MemberFacts{Name: "m", Member: &lost}, "member m: no heartbeat since noon. Remedy: start the agent, or check the agent's log on the member cluster: kubectl logs"},
		"with an API server that is not ready": {joined(func(f *MemberFacts) {
			f.Member.Status.AgentStatus[0].Conditions = []metav1.Condition{condition(clusterv1beta1.ConditionHealthy, metav1.ConditionFalse, "", "etcd is slow")}
		}), "the member's API server is not ready: etcd is slow"},
		"without credential": {joined(func(f *MemberFacts) {
			f.Tunnel = &gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNoCredential}
		}), "Remedy: check its ManagedServiceAccount"},
		"with an outdated agent": {joined(func(f *MemberFacts) {
			f.Member.Status.Conditions = append(f.Member.Status.Conditions, condition(clusterv1beta1.ConditionAgentOutdated, metav1.ConditionTrue, "", "the agent is v0.1.0"))
		}), "the agent is v0.1.0. Remedy: upgrade the agent; see docs/how-to/upgrade.md"},
		"paused": {joined(func(f *MemberFacts) {
			f.Member.Annotations = map[string]string{placementv1beta1.PausedAnnotation: "true"}
		}), "the member is paused"},
		"leaving": {joined(func(f *MemberFacts) { f.Member.DeletionTimestamp = &metav1.Time{} }), "the member is leaving; its agent has not confirmed yet"},
		"has left": {&MemberFacts{Name: "m", Cluster: &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "clusters", Name: "m", Annotations: map[string]string{"fleetgate.io/member-uid": "x"}}}}, "prevents it from joining again. Remedy: to allow it to join again, run kubectl annotate"},
		"with a rejected registration": {&MemberFacts{Name: "m", Tokens: good, Registrations: []registrationv1alpha1.ClusterRegistration{{Status: registrationv1alpha1.ClusterRegistrationStatus{
			Conditions: []metav1.Condition{condition(registrationv1alpha1.RegistrationConditionGranted, metav1.ConditionFalse, "TokenUseLimitReached", "used up")}}}}}, "check whether one of the registrations below belongs to it"},
		"without a valid token": {&MemberFacts{Name: "m"}, "member m: no cluster with this name has registered, and no registration token is valid; earlier tokens have expired or are used up. Remedy: create a token: kubectl fleetgate token"},
		"that does not exist":   {&MemberFacts{Name: "m", Tokens: good}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if problems := Member(test.facts); len(problems) > 0 {
				got = problems[0].String()
			}
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// eviction is one of placement shop from member m, some seconds ago.
func eviction(ago int, executed metav1.ConditionStatus) placementv1beta1.ClusterResourcePlacementEviction {
	e := placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Unix(int64(1000-ago), 0))}}
	e.Spec = placementv1beta1.PlacementEvictionSpec{PlacementName: "shop", ClusterName: "m"}
	e.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionEvictionExecuted, executed, "", "Eviction is blocked")}
	return e
}

func TestPlacement_ReportsOnlyNewestBlockedEviction(t *testing.T) {
	cordoned := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1beta1.MemberClusterSpec{Taints: []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintCordoned}}}}
	schedulable := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	for name, test := range map[string]struct {
		member    clusterv1beta1.MemberCluster
		evictions []placementv1beta1.ClusterResourcePlacementEviction
		blocked   bool
	}{
		"blocked eviction":                          {cordoned, []placementv1beta1.ClusterResourcePlacementEviction{eviction(9, metav1.ConditionFalse)}, true},
		"member uncordoned since":                   {schedulable, []placementv1beta1.ClusterResourcePlacementEviction{eviction(9, metav1.ConditionFalse)}, false},
		"blocked before executed":                   {cordoned, []placementv1beta1.ClusterResourcePlacementEviction{eviction(9, metav1.ConditionFalse), eviction(5, metav1.ConditionTrue)}, false},
		"executed before blocked, in another order": {cordoned, []placementv1beta1.ClusterResourcePlacementEviction{eviction(5, metav1.ConditionFalse), eviction(9, metav1.ConditionTrue)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := placed(func(f *Facts, _ *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
				f.Members, f.Evictions = []clusterv1beta1.MemberCluster{test.member}, test.evictions
			})
			if problems := Placement(f); (len(problems) > 0) != test.blocked {
				t.Errorf("got %v", problems)
			}
		})
	}
}

func TestObject_NamesPlacementAndFieldManager(t *testing.T) {
	work := placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m", Name: "shop-work", Labels: map[string]string{placementv1beta1.ParentResourceSnapshotIndexLabel: "3"}}}
	work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier: placementv1beta1.WorkResourceIdentifier{Kind: "Deployment", Resource: "deployments", Group: "apps", Namespace: "shop", Name: "web"},
		Conditions: []metav1.Condition{condition(placementv1beta1.ConditionApplied, metav1.ConditionTrue, "", "")},
	}}
	f := &ObjectFacts{Kind: "deployments.apps", Namespace: "shop", Name: "web", Member: "m", Works: []placementv1beta1.Work{work}, PlacementOf: func(metav1.Object) string { return "shop" }}
	older, newer := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	f.Fields = []metav1.ManagedFieldsEntry{{Manager: "fleetgate", Time: &older}, {Manager: "kubectl-edit", Time: &newer}}
	got, wrong := Object(f)
	if text := strings.Join(got.Details, "\n"); wrong || !strings.Contains(text, "placed by shop, snapshot 3, in Work fleet-member-m/shop-work\nlast written by kubectl-edit") {
		t.Errorf("wrong %v: %s\n%s", wrong, got, text)
	}
	f.Works[0].Status.ManifestConditions[0].Conditions = []metav1.Condition{condition(placementv1beta1.ConditionApplied, metav1.ConditionFalse, placementv1beta1.ReasonNotTakenOver, "not ours")}
	f.Unread = errors.New("no tunnel")
	if got, wrong := Object(f); !wrong || !strings.Contains(got.String(), "not applied: not ours. Remedy: set whenToTakeOver") || !strings.Contains(strings.Join(got.Details, ""), "no tunnel") {
		t.Errorf("wrong %v: %s", wrong, got)
	}
	f.Name = "other"
	if got, wrong := Object(f); !wrong || !strings.Contains(got.Reason, "no placement applies this object") {
		t.Errorf("wrong %v: %s", wrong, got)
	}
}

// aboutWeb asks about Deployment web of namespace shop, of which a Work has the manifest.
func aboutWeb(t *testing.T) *ObjectFacts {
	t.Helper()
	work := placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m", Name: "shop-work"}}
	work.Spec.Workload.Manifests = []placementv1beta1.Manifest{
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`)}},
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"}}`)}},
	}
	return &ObjectFacts{
		Kind: "deploy", Namespace: "shop", Name: "web", Member: "m", Works: []placementv1beta1.Work{work}, PlacementOf: func(metav1.Object) string { return "shop" },
		Mapping: &meta.RESTMapping{
			Resource:         schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Scope: meta.RESTScopeNamespace,
		},
	}
}

func TestObject_FindsManifestWithoutReport(t *testing.T) {
	f := aboutWeb(t)
	got, wrong := Object(f)
	if text := strings.Join(got.Details, "\n"); !wrong || !strings.HasPrefix(got.String(), "Deployment shop/web on member m: in progress: the member has not reported a status yet. Remedy: wait") || !strings.Contains(text, "placed by shop") {
		t.Errorf("wrong %v: %s\n%s", wrong, got, text)
	}
	// A reported manifest is found only once.
	f.Works[0].Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: 1, Group: "apps", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "web"},
		Conditions: []metav1.Condition{condition(placementv1beta1.ConditionApplied, metav1.ConditionTrue, "", "")},
	}}
	if got, wrong := Object(f); wrong || len(f.Finds()) != 1 {
		t.Errorf("wrong %v: %s, %d finds", wrong, got, len(f.Finds()))
	}
}

func TestObject_DistinguishesNamespaces(t *testing.T) {
	f := aboutWeb(t)
	f.Namespace = "default"
	f.Fields = []metav1.ManagedFieldsEntry{{Manager: "helm", Time: &metav1.Time{Time: time.Unix(1000, 0)}}}
	got, wrong := Object(f)
	text := strings.Join(got.Details, "\n")
	if !wrong || got.Reason != "no placement applies this object" || !strings.Contains(text, "shop applies one in namespace shop: select it with -n shop") || !strings.Contains(text, "last written by helm") {
		t.Errorf("wrong %v: %s\n%s", wrong, got, text)
	}
	f.Unread = apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, "web")
	if got, _ := Object(f); !strings.Contains(strings.Join(got.Details, "\n"), "the object does not exist on the member") {
		t.Errorf("got %v", got.Details)
	}
	// An object of another group is not found either.
	f = aboutWeb(t)
	f.Mapping.GroupVersionKind.Group = "example.com"
	if finds := f.Finds(); len(finds) != 0 {
		t.Errorf("got %v", finds)
	}
}

func TestAFinalizerThatNobodyRemovesIsNamedWithTheCommand(t *testing.T) {
	message := `1 objects still exist on the member. Bucket.r10.example.org r10/photos waits for finalizers ["r10.example.org/bucket"]. ` +
		`If the controller that removes them no longer exists, run on the member: kubectl patch bucket.v1.r10.example.org photos -n r10`
	for name, change := range map[string]func(*Facts, *placementv1beta1.ClusterResourcePlacement, *placementv1beta1.ClusterResourceBinding){
		"of a placement that is deleted": func(_ *Facts, p *placementv1beta1.ClusterResourcePlacement, _ *placementv1beta1.ClusterResourceBinding) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		},
		"of a placement that moves": func(_ *Facts, _ *placementv1beta1.ClusterResourcePlacement, b *placementv1beta1.ClusterResourceBinding) {
			b.Spec.State = placementv1beta1.BindingUnscheduled
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := placed(change)
			f.Removals = []Removal{{Member: "m", Message: message}}
			problems := Placement(f)
			if len(problems) == 0 || !strings.Contains(problems[0].Reason, `r10/photos waits for finalizers ["r10.example.org/bucket"]`) ||
				!strings.HasSuffix(problems[0].Remedy, "run on m: kubectl patch bucket.v1.r10.example.org photos -n r10") {
				t.Errorf("the answers are %+v", problems)
			}
		})
	}
}
