// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
)

// request returns the code and the body of a debugger's response. Its hub has three clusters, one of
// them tainted, of which Placement p takes one; only user u has permission.
func request(t *testing.T, method, path, name, body string) (int, string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, ocmclusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	tainted := managed("c2", func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = []clusterv1.Taint{{Key: "a", Effect: clusterv1.TaintEffectNoSelect}}
	})
	there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(managed("c1", nil), tainted, managed("c3", nil), placed(func(spec *ocmclusterv1beta1.PlacementSpec) { one(spec); byUsage(spec) }),
		&clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}, sheet("c3", 7, nil),
		&clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set"}}).Build()
	may := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "u" && a.GetNamespace() == "team" && (a.GetVerb() == "get" || a.GetVerb() == "create") {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "no rule", nil
	})
	d := &Debugger{Reader: client.Reader(there), Clock: testingclock.NewFakePassiveClock(noon), May: may, User: apirequest.UserFrom}
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	response := httptest.NewRecorder()
	d.ServeHTTP(response, request.WithContext(apirequest.WithUser(request.Context(), &user.DefaultInfo{Name: name})))
	return response.Code, response.Body.String()
}

func TestDebugger_ExplainsDecision(t *testing.T) {
	want := debugged{
		Filters: []debuggedFilter{{"Predicate", []string{"c1", "c2", "c3"}}, {"Predicate,TaintToleration", []string{"c1", "c3"}}},
		Scorers: []debuggedScorer{{"AddOn/usage/cpu", 1, map[string]int64{"c1": 0, "c3": 7}}}, Aggregated: []debuggedScore{{"c3", 7}, {"c1", 0}},
	}
	of, err := json.Marshal(placed(func(spec *ocmclusterv1beta1.PlacementSpec) { one(spec); byUsage(spec) }))
	if err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string][3]string{"there": {http.MethodGet, DebugPath + "team/p", ""}, "sent": {http.MethodPost, DebugPath, string(of)}} {
		t.Run(name, func(t *testing.T) {
			code, body := request(t, ask[0], ask[1], "u", ask[2])
			var got debugged
			if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
				t.Fatalf("%v: %d %s", err, code, body)
			}
			if got.Placement == nil || got.Placement.Name != "p" || got.Placement.UID != "" {
				t.Errorf("got the Placement %+v", got.Placement)
			}
			got.Placement = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDebugger_RefusesOtherRequests(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, user, body string
		code                     int
		message                  string
	}{
		"no right":                    {"GET", "team/p", "v", "", 403, "user does not have permission to get placements in namespace team"},
		"no right, and none there":    {"GET", "other/none", "u", "", 403, "namespace other"},
		"none there":                  {"GET", "team/none", "u", "", 404, "placement 'none' not found"},
		"no name":                     {"GET", "team", "u", "", 400, "NAMESPACE/NAME"},
		"something else":              {"DELETE", "team/p", "u", "", 405, "POST with a Placement in the body"},
		"a namespace of others, sent": {"POST", "", "u", `{"metadata": {"namespace": "other", "name": "p"}}`, 403, "create placements"},
		"no JSON":                     {"POST", "", "u", `{`, 400, "reading the Placement"},
		"too much":                    {"POST", "", "u", strings.Repeat(" ", maxDebugged+1), 400, "request body too large"},
		"what cannot be carried out":  {"POST", "", "u", `{"metadata": {"namespace": "team", "name": "p"}, "spec": {"tolerations": [{"value": "x"}]}}`, 200, "TaintToleration:"},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := request(t, c.method, DebugPath+c.path, c.user, c.body)
			var got debugged
			if err := json.Unmarshal([]byte(body), &got); err != nil || code != c.code || !strings.Contains(got.Error, c.message) {
				t.Errorf("%v: got %d %s", err, code, body)
			}
		})
	}
}
