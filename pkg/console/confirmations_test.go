// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// asksForApproval is a run with a pending approval request, which has a condition of another client.
func asksForApproval() []client.Object {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "this-run"}}
	approval := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: "r-canary", Labels: map[string]string{placementv1beta1.TargetUpdateRunLabel: "r"}}}
	approval.Status.Conditions = []metav1.Condition{{Type: "Reviewed", Status: metav1.ConditionTrue, Reason: "Seen", Message: "by \u202enobody\u2066"}}
	return []client.Object{run, approval}
}

// sent collects the bodies of requests to the hub.
func sent(t *testing.T, bodies *[]string) interceptor.Funcs {
	note := func(object client.Object, patch client.Patch) {
		body, err := patch.Data(object)
		if err != nil {
			t.Error(err)
		}
		*bodies = append(*bodies, string(body))
	}
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			note(object, patch)
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			note(object, patch)
			return c.SubResource(resource).Patch(ctx, object, patch, options...)
		},
	}
}

func post(handler http.Handler, path string, form url.Values) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, request)
	return w
}

// confirmation reads the page that shows a request: the request, its body, and the form.
func confirmation(t *testing.T, handler http.Handler, what string) (request, body string, form url.Values) {
	t.Helper()
	page := get(handler, "/runs/confirm?what="+what+"&run=r").Body.String()
	shown := regexp.MustCompile(`(?s)<pre[^>]*>(.*?)</pre>`).FindStringSubmatch(page)
	id := regexp.MustCompile(`name="shown" value="([^"]+)"`).FindStringSubmatch(page)
	if shown == nil || id == nil {
		t.Fatalf("%s page:\n%s", what, page)
	}
	request = html.UnescapeString(shown[1])
	_, body, _ = strings.Cut(request, "\n\n")
	return request, body, url.Values{"shown": {id[1]}}
}

func TestConfirm_SendsExactlyTheShownRequestOnce(t *testing.T) {
	for what, path := range map[string]string{"approve": "clusterapprovalrequests/r-canary/status", "stop": "clusterstagedupdateruns/r"} {
		t.Run(what, func(t *testing.T) {
			var bodies []string
			handler := overHub(t, noTable, sent(t, &bodies), asksForApproval()...)
			request, body, form := confirmation(t, handler, what)
			if want := "PATCH /apis/placement.kubernetes-fleet.io/v1beta1/" + path + "\nContent-Type: application/merge-patch+json\n\n{"; !strings.HasPrefix(request, want) {
				t.Errorf("request:\n%s", request)
			}
			if strings.ContainsAny(request, "\u202e\u2066") {
				t.Errorf("bidirectional characters are not removed:\n%q", request)
			}
			if w := post(handler, "/runs/"+what, url.Values{"shown": {"guessed"}}); w.Code == http.StatusSeeOther || len(bodies) != 0 {
				t.Errorf("sent without a confirmation: %q", bodies)
			}
			if w := post(handler, "/runs/"+what, form); w.Code != http.StatusSeeOther || len(bodies) != 1 || bodies[0] != body {
				t.Errorf("%d: shown\n%s\nsent\n%q", w.Code, body, bodies)
			}
			if w := post(handler, "/runs/"+what, form); w.Code == http.StatusSeeOther || len(bodies) != 1 {
				t.Errorf("one confirmation sent it twice: %q", bodies)
			}
		})
	}
}

func TestApprove_FailsIfRequestChangedSinceShown(t *testing.T) {
	objects := asksForApproval()
	var bodies []string
	var hubOf client.Client
	functions := sent(t, &bodies)
	functions.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		hubOf = c
		return c.List(ctx, list, options...)
	}
	handler := overHub(t, noTable, functions, objects...)
	_, body, form := confirmation(t, handler, "approve")
	if !strings.Contains(body, `by \u202enobody\u2066`) || !strings.Contains(body, `"resourceVersion":`) {
		t.Errorf("shown: %s", body)
	}
	approval := &placementv1beta1.ClusterApprovalRequest{}
	if err := hubOf.Get(t.Context(), client.ObjectKey{Name: "r-canary"}, approval); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&approval.Status.Conditions, metav1.Condition{Type: "Rejected", Status: metav1.ConditionTrue, Reason: "No", Message: "wait for the audit"})
	if err := hubOf.Status().Update(t.Context(), approval); err != nil {
		t.Fatal(err)
	}
	if w := post(handler, "/runs/approve", form); w.Code == http.StatusSeeOther || !strings.Contains(w.Body.String(), "review it again") {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if err := hubOf.Get(t.Context(), client.ObjectKey{Name: "r-canary"}, approval); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(approval.Status.Conditions, "Rejected") || meta.IsStatusConditionTrue(approval.Status.Conditions, placementv1beta1.ConditionApprovalRequestApproved) {
		t.Errorf("conditions = %+v", approval.Status.Conditions)
	}
}

func TestConfirmations_Expire(t *testing.T) {
	var s confirmations
	now := time.Unix(1000, 0)
	first, err := s.keep("stop", nil, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.take("approve", first, now); err == nil {
		t.Error("confirmation of one action is valid for another")
	}
	if _, err := s.take("stop", first, now.Add(confirmWithin)); err == nil {
		t.Error("confirmation does not expire")
	}
	for range maxPending {
		if _, err := s.keep("stop", nil, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.take("stop", first, now); err == nil || len(s.all) != maxPending {
		t.Errorf("%d confirmations are stored", len(s.all))
	}
}
