// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetagent

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

func acceptedCluster(name string) *clusterv1.ManagedCluster {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "cluster"}}
	cluster.Spec.HubAcceptsClient = true
	cluster.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue}, {Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue},
	}
	return cluster
}

func fleetCluster(of string) *registrationv1alpha1.Cluster {
	return &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Annotations: map[string]string{addonv1alpha1.ManagedClusterAnnotation: of}}}
}

func TestRefuse_OnlyAcceptedClustersWithFreeNamesGetAnAgent(t *testing.T) {
	denied, pending, leaving := acceptedCluster("edge"), acceptedCluster("edge"), acceptedCluster("edge")
	denied.Spec.HubAcceptsClient = false
	pending.Status.Conditions = nil
	leaving.DeletionTimestamp = &metav1.Time{}
	ending := fleetCluster("cluster")
	ending.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		disabled bool
		cluster  *clusterv1.ManagedCluster
		fleet    *registrationv1alpha1.Cluster
		want     string
	}{
		"accepted":                      {cluster: acceptedCluster("edge")},
		"delivered":                     {cluster: acceptedCluster("edge"), fleet: fleetCluster("cluster")},
		"not enabled":                   {disabled: true, cluster: acceptedCluster("edge"), want: addonv1alpha1.ReasonAgentNotEnabled},
		"no ManagedCluster":             {cluster: &clusterv1.ManagedCluster{}, want: addonv1alpha1.ReasonClusterNotAccepted},
		"denied":                        {cluster: denied, want: addonv1alpha1.ReasonClusterNotAccepted},
		"without a namespace yet":       {cluster: pending, want: addonv1alpha1.ReasonClusterNotAccepted},
		"being deleted":                 {cluster: leaving, want: addonv1alpha1.ReasonClusterNotAccepted},
		"name too long":                 {cluster: acceptedCluster(strings.Repeat("e", 51)), want: addonv1alpha1.ReasonNameNotAllowed},
		"longest name":                  {cluster: acceptedCluster(strings.Repeat("e", 50))},
		"Cluster of a user":             {cluster: acceptedCluster("edge"), fleet: fleetCluster(""), want: addonv1alpha1.ReasonMemberExists},
		"Cluster of a former cluster":   {cluster: acceptedCluster("edge"), fleet: fleetCluster("former"), want: addonv1alpha1.ReasonMemberExists},
		"Cluster that is being deleted": {cluster: acceptedCluster("edge"), fleet: ending, want: addonv1alpha1.ReasonMemberExists},
	} {
		if got := refuse(!tc.disabled, tc.cluster, tc.fleet); got == nil && tc.want != "" || got != nil && got.Reason != tc.want {
			t.Errorf("%s: %v, want %q", name, got, tc.want)
		}
	}
}

func manifest(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("rbac.authorization.k8s.io/v1")
	object.SetKind(kind)
	object.SetName(name)
	return object
}

func TestDesiredWork_LeavesToTheAgentWhatItUpdates(t *testing.T) {
	work, err := desiredWork(client.ObjectKey{Namespace: "edge", Name: workName}, []*unstructured.Unstructured{
		manifest("ClusterRole", "fleetgate:agent"), manifest("ClusterRole", "fleetgate-impersonate-x"), manifest("ClusterRoleBinding", "fleetgate-impersonate-x"),
	}, "v")
	if err != nil {
		t.Fatal(err)
	}
	if got := work.Spec.ManifestConfigs; len(got) != 2 || got[0].ResourceIdentifier.Resource != "clusterroles" || got[1].ResourceIdentifier.Resource != "clusterrolebindings" ||
		got[0].UpdateStrategy.Type != workv1.UpdateStrategyCreateOnly {
		t.Errorf("got %+v", got)
	}
	if len(work.Spec.Workload.Manifests) != 3 || work.Labels[addonv1alpha1.AddOnNameLabel] != addonv1alpha1.FleetgateAgent {
		t.Errorf("got %+v", work)
	}
}

func TestKnownVersion_IsUnknownAfterChangesOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*workv1.ManifestWork)
		want   string
	}{
		"unchanged": {func(*workv1.ManifestWork) {}, "v"},
		"fields in another order": {func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"metadata": {"name": "a"}, "kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1"}`)
		}, "v"},
		"another manifest": {func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests[0].Raw = []byte(`{"kind": "Pod"}`) }, ""},
		"one more": {func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, workv1.Manifest{})
		}, ""},
		"a label removed":    {func(w *workv1.ManifestWork) { w.Labels = nil }, ""},
		"an executor":        {func(w *workv1.ManifestWork) { w.Spec.Executor = &workv1.ManifestWorkExecutor{} }, ""},
		"annotation removed": {func(w *workv1.ManifestWork) { w.Annotations = nil }, ""},
	} {
		work, err := desiredWork(client.ObjectKey{}, []*unstructured.Unstructured{manifest("ClusterRole", "a")}, "v")
		if err != nil {
			t.Fatal(err)
		}
		tc.change(work)
		if got := knownVersion(work); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := knownVersion(&workv1.ManifestWork{}); got != "" {
		t.Errorf("no ManifestWork: %q", got)
	}
}

// reported is a member whose agent has reported.
func reported(joined, healthy metav1.ConditionStatus) *clusterv1beta1.MemberCluster {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "member"}}
	member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: joined}}
	member.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(time.Unix(0, 0)),
		Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionHealthy, Status: healthy}},
	}}
	return member
}

func TestAvailable_SaysWhatIsAwaited(t *testing.T) {
	silent := acceptedCluster("edge")
	silent.Status.Conditions[1] = metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: clusterv1.ReasonLeaseUpdateStopped, Message: "silent"}
	work := func(status metav1.ConditionStatus, generation int64) *workv1.ManifestWork {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{UID: "work", Generation: 2}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1.ConditionApplied, Status: status, ObservedGeneration: generation, Message: "no rights"}}
		return w
	}
	for name, tc := range map[string]struct {
		known facts
		want  string
	}{
		"refused":                {facts{refused: refusal.New("Because", "of that")}, "False Because of that"},
		"not applied":            {facts{work: &workv1.ManifestWork{}}, "False WaitingForKlusterlet Waiting for the klusterlet to apply ManifestWork \"" + workName + "\""},
		"apply failed":           {facts{work: work(metav1.ConditionFalse, 2)}, "False WaitingForKlusterlet Waiting for the klusterlet to apply ManifestWork \"" + workName + "\": no rights"},
		"outdated":               {facts{work: work(metav1.ConditionTrue, 1)}, "False WaitingForKlusterlet Waiting for the klusterlet to apply ManifestWork \"" + workName + "\""},
		"not joined":             {facts{work: work(metav1.ConditionTrue, 2), ready: "so"}, "False WaitingForAgent The agent is installed and has not joined; check its Pod in namespace fleetgate-agent of the cluster: so"},
		"joined":                 {facts{work: work(metav1.ConditionTrue, 2), member: reported("True", "True")}, "True FeatureAvailable fleetgate-agent add-on is available."},
		"joined, update awaited": {facts{work: work(metav1.ConditionTrue, 1), member: reported("True", "True")}, "True FeatureAvailable fleetgate-agent add-on is available."},
		"joined, no rendering":   {facts{refused: refusal.New("Because", "of that"), member: reported("True", "True")}, "True FeatureAvailable fleetgate-agent add-on is available."},
		"unhealthy":              {facts{member: reported("True", "False")}, "False AgentUnhealthy The agent reports that its cluster is not healthy; see its conditions in MemberCluster edge"},
		"agent silent":           {facts{member: reported("Unknown", "True")}, "Unknown AgentHeartbeatStopped No heartbeat of the agent since 1970-01-01T00:00:00Z"},
		"klusterlet silent":      {facts{cluster: silent, member: reported("True", "True")}, "Unknown ManagedClusterLeaseUpdateStopped silent"},
		"own agent":              {facts{own: true}, "True FeatureAvailable The cluster has fleetgate's agent already"},
	} {
		if tc.known.cluster == nil {
			tc.known.cluster = acceptedCluster("edge")
		}
		got := tc.known.available()
		if said := string(got.Status) + " " + got.Reason + " " + got.Message; said != tc.want {
			t.Errorf("%s: %s, want %s", name, said, tc.want)
		}
	}
}
